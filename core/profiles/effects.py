"""Effects of the mechanisms of probes over 8 or 16 seeds, as the published records have them.

A score is a difference in units of its probe's effect, so that a profile made anywhere has the unit
of the published ones.
"""

from collections.abc import Mapping

from eval.stats.probe_scores import PairEffect

EFFECTS: Mapping[str, PairEffect] = {
    "learns": PairEffect(59.3994, 2.147),
    "sample-efficiency": PairEffect(0.0983154, 0.01097),
    "many-updates": PairEffect(19.7754, 1.572),
    "old-sampler": PairEffect(13.4033, 1.083),
    "low-bit-sampler": PairEffect(8.76465, 2.204),
    "wrong-length": PairEffect(15.898, 1.057),
    "limit": PairEffect(0.130127, 0.006338),
    "small-groups": PairEffect(6.95801, 1.543),
    "rarely-right": PairEffect(0.0227873, 0.005759),
    "flipped-rewards": PairEffect(16.9688, 2.25),
    "two-rewards": PairEffect(33.9355, 1.972),
    "kl-cost": PairEffect(0.135214, 0.02808),
    "diversity": PairEffect(0.0890384, 0.008963),
    "distinct-answers": PairEffect(0.814453, 0.1264),
}
