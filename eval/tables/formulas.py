"""Converts LaTeX formulas in texts to MathML, which browsers render without scripts."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree

# The page's script splits texts by the same expression; its source is embedded in the page. As in
# Pandoc's Markdown, a dollar sign before an amount of money does not start a formula.
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
    """Return the MathML of each formula in the texts, by its LaTeX source with delimiters.

    Formulas that cannot be converted are left out.
    """
    sources = {source for text in texts for source in FORMULA.findall(text)}
    markup_by_source = {source: mathml(source) for source in sorted(sources)}
    return {source: markup for source, markup in markup_by_source.items() if markup is not None}


def mathml(source: str) -> str | None:
    """Convert a formula with its delimiters to MathML without links.

    Return None if that fails, or if the formula is too long or gives elements that are not allowed.
    """
    from latex2mathml.converter import convert  # only pages need it

    inner = re.sub(r"^(\$\$|\\\[|\\\(|\$)|(\$\$|\\\]|\\\)|\$)$", "", source)
    if len(inner) > LONGEST:
        return None
    try:
        markup = convert(inner, display="block" if source.startswith(("$$", "\\[")) else "inline")
        root = ElementTree.fromstring(markup)
    except Exception:  # on a model's text the converter can raise anything
        return None
    for element in root.iter():
        if element.tag.removeprefix(NAMESPACE) not in ELEMENTS:
            return None
        for name in [*element.attrib]:
            if name not in ATTRIBUTES:  # such as a link
                del element.attrib[name]
    ElementTree.register_namespace("", NAMESPACE.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode")
