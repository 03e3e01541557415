"""LaTeX in texts as MathML, which browsers draw by themselves."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree

# What a browser splits a text by, too: the source of the same expression is a part of the page.
# As in Pandoc's Markdown a dollar of money is none of a formula.
FORMULA = re.compile(
    r"(\$\$[^$]+?\$\$|\\\[[\s\S]+?\\\]|\\\([\s\S]+?\\\)"
    r"|(?<![\\$])\$(?![\s$])[^$\n]*?[^\s$\\]\$(?![\d$])|\\boxed\{[^{}\n]+\})"
)
LONGEST = 2000  # characters; a longer one is shown as its source
NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
ELEMENTS = {
    *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts"),
    *("mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose", "none"),
}
ATTRIBUTES = {
    *("display", "displaystyle", "scriptlevel", "mathvariant", "stretchy", "fence", "form"),
    *("lspace", "rspace", "width", "height", "depth", "voffset", "linethickness", "accent"),
    *("accentunder", "minsize", "maxsize", "movablelimits", "largeop", "separator", "notation"),
    *("columnalign", "columnspacing", "columnlines", "rowspacing", "rowlines"),
}


def formulas(texts: Iterable[str]) -> dict[str, str]:
    """The formulas of texts, as they stand there, to MathML; without those that cannot be drawn."""
    sources = {source for text in texts for source in FORMULA.findall(text)}
    drawn = {source: mathml(source) for source in sorted(sources)}
    return {source: markup for source, markup in drawn.items() if markup is not None}


def mathml(source: str) -> str | None:
    """A formula with its delimiters as MathML that does nothing but show; None if that fails."""
    from latex2mathml.converter import convert  # only pages need it

    inner = re.sub(r"^(\$\$|\\\[|\\\(|\$)|(\$\$|\\\]|\\\)|\$)$", "", source)
    if len(inner) > LONGEST:
        return None
    try:
        found = convert(inner, display="block" if source.startswith(("$$", "\\[")) else "inline")
        root = ElementTree.fromstring(found)
    except Exception:  # a parser fails on a model's text in whatever way it does
        return None
    for element in root.iter():
        if element.tag.removeprefix(NAMESPACE) not in ELEMENTS:
            return None
        for name in [*element.attrib]:
            if name not in ATTRIBUTES:  # such as a link
                del element.attrib[name]
    ElementTree.register_namespace("", NAMESPACE.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode")
