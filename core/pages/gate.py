"""The page of how often `repro check` detects a drop; `make gate` simulates it again."""

from core.records.files import write_atomic
from core.records.places import Shelf
from eval.stats import gate_rates, regressions
from eval.tables.render import environment

PAGE = "gate.md"


def gate_page(rates: list[gate_rates.Rate]) -> str:
    """Render the page: the simulated rates, the method, and the bounds that are met."""
    template = environment("md").get_template("gate.md.j2")
    return template.render(rates=rates, of=gate_rates, rules=regressions)


if __name__ == "__main__":
    write_atomic(Shelf.PUBLISHED.reports / PAGE, gate_page(gate_rates.rates()))
