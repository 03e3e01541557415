"""Effects."""

from eval.stats.probe_scores import PairEffect

EFFECTS: dict[str, PairEffect] = {}
