"""Laws of papers under changes of the code that they call."""

from pathlib import Path

from mutations import applied, mutants_of

from core.claims import Comparison
from core.paper.registry import find_paper
from core.verdicts.judge import judge_claim

ROOT = Path(__file__).parents[2]


def laws_of(*slugs):
    """The exact claims of these papers."""
    claims = [claim for slug in slugs for claim in find_paper(slug).claims]
    return [c for c in claims if isinstance(c.test, Comparison) and c.test.kind == "exact"]


def forget(*sides):
    """Let sides be computed again."""
    for side in sides:
        vars(side).pop("computed", None)
        forget(*side.parts)


def holds(claim):
    """Whether a law holds now; the paper keeps no value that changed code has computed."""
    sides = (claim.test.left, claim.test.right)
    forget(*sides)
    try:
        return judge_claim(claim, {})["verdict"] == "held"
    except Exception:  # changed code may raise anything
        return False
    finally:
        forget(*sides)


def survivors(laws, path, lines=None, before=lambda: None):
    """The changes of a file, or of these lines of it, under which all laws hold."""
    package = ".".join(Path(path).parts[:-1])
    found, tried = [], 0
    for mutant in mutants_of(ROOT / path, package):
        if lines is None or mutant.line in lines:
            tried += 1
            with applied(mutant):
                before()
                if all(map(holds, laws)):
                    found.append(f"{mutant.kind}: {mutant.change}")
    before()
    assert tried
    return found
