"""`repro run` with a class of trainers: it trains, its record names it, others are refused."""

from changed_settings import changed

from core.records.record import read_records

SLUG = "deepseekmath-grpo"
SMALL = ("at_k_samples=2", "at_k_limit=1", "heldout_problems=2")
STILL = """
from core import GRPOTrainer, SFTTrainer

class Still(GRPOTrainer):
    def advantages(self, scored):
        return 0 * super().advantages(scored)
"""


def test_the_class_trains_in_place_of_the_family_s_own(repro, settings, root):
    (root / "still.py").write_text(STILL)
    given = changed(settings, *SMALL, f"trainer={root / 'still.py'}:Still", "beta=0.0")
    result = repro("run", SLUG, "--jobs", 1, *given)
    assert result.exit_code == 0, result.output
    (record,) = (r for r in read_records(SLUG) if r["kind"] == "run")
    assert record["config"]["trainer"] == {
        "value": f"{root / 'still.py'}:Still",
        "source": "command line",
    }
    assert {norm for _, norm in record["curves"]["grad_norm"]} == {0}


def test_a_class_of_another_family_is_refused_in_a_line(repro, settings, root):
    (root / "other.py").write_text(STILL)
    given = changed(settings, *SMALL, f"trainer={root / 'other.py'}:SFTTrainer")
    result = repro("run", SLUG, "--jobs", 1, *given)
    assert result.exit_code == 2
    assert "other.py:SFTTrainer: expected a class that extends GRPOTrainer; found" in result.stderr
    assert not [*root.glob("runs/train-*")]
