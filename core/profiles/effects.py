"""Effects of the mechanisms of probes over 8 seeds, as the published records have them.

A score is a difference in units of its probe's effect, so that a profile made anywhere has the unit
of the published ones.
"""

from collections.abc import Mapping

from eval.stats.probe_scores import PairEffect

EFFECTS: Mapping[str, PairEffect] = {
    "learns": PairEffect(58.0566, 2.408),
    "sample-efficiency": PairEffect(0.0983154, 0.01097),
    "many-updates": PairEffect(19.7754, 1.572),
    "old-sampler": PairEffect(13.4033, 1.083),
    "low-bit-sampler": PairEffect(8.76465, 2.204),
    "wrong-length": PairEffect(13.2141, 1.004),
    "limit": PairEffect(0.106899, 0.01321),
    "small-groups": PairEffect(6.95801, 1.543),
    "hard-prompts": PairEffect(0.537109, 2.247),
    "noisy-rewards": PairEffect(9.00879, 3.282),
    "two-rewards": PairEffect(38.8672, 8.202),
    "kl-cost": PairEffect(0.135214, 0.02808),
    "diversity": PairEffect(0.0890384, 0.008963),
    "rare-answers": PairEffect(2.73438, 2.67),
}
