"""The page of how often `repro check` finds a drop; `make gate` simulates it anew."""

from core.records.files import write_atomic
from core.records.places import Shelf
from eval.stats import gate_rates, regressions
from eval.tables.render import environment

PAGE = "gate.md"


def gate_page(found: list[gate_rates.Rate]) -> str:
    """What was simulated, how, and which bounds are met."""
    template = environment("md").get_template("gate.md.j2")
    return template.render(rates=found, of=gate_rates, rules=regressions)


if __name__ == "__main__":
    write_atomic(Shelf.PUBLISHED.reports / PAGE, gate_page(gate_rates.rates()))
