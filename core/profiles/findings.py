"""Findings: one sentence about each algorithm with a published profile, and its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.profiles.scores import Row


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A sentence about an algorithm and the comparisons with plain GRPO that it rests on.

    All of them are at the learning rate of plain GRPO.

    Attributes:
        text: The sentence; `{probe}` is replaced by the difference on that probe, with its interval
            and unit, positive where the algorithm is better.
        better: Probes whose interval lies above 0.
        worse: Probes whose interval lies below 0.
        alike: Probes whose interval contains 0.
    """

    text: str
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()

    def holds(self, rows: Mapping[str, Row]) -> bool:
        """Return whether scores at one learning rate support the sentence."""
        signs = {name: row.sign for name, row in rows.items() if row.has_equal_rates}
        named = {1: self.better, -1: self.worse, 0: self.alike}
        return all(signs.get(name) == sign for sign, names in named.items() for name in names)


FINDINGS: Mapping[str, Finding] = {
    "beyond-80-20": Finding(
        text="Trained on the fifth of the tokens with the highest entropy alone it learns more "
        "slowly ({sample-efficiency}), above all from small groups ({small-groups}), and stays "
        "diverse ({diversity}).",
        better=("diversity",),
        worse=("sample-efficiency", "small-groups"),
    ),
    "cispo": Finding(
        text="Its wrong answers are shorter ({wrong-length}); it goes further from its start "
        "({kl-cost}) and gives fewer different right answers ({distinct-answers}).",
        better=("wrong-length",),
        worse=("kl-cost", "distinct-answers"),
    ),
    "dapo": Finding(
        text="Groups without a signal are sampled anew: it learns more from small groups "
        "({small-groups}) and earns more on the way ({sample-efficiency}), at the price "
        "of diversity ({diversity}).",
        better=("small-groups", "sample-efficiency"),
        worse=("diversity",),
    ),
    "deepseek-r1": Finding(
        text="Its clip leaves ratios up to 11: it goes further from its start ({kl-cost}), gives "
        "fewer different right answers ({distinct-answers}) and loses more with a sampler that "
        "lags ({old-sampler}); wrong answers are shorter ({wrong-length}).",
        better=("wrong-length",),
        worse=("kl-cost", "distinct-answers", "old-sampler"),
    ),
    "deepseek-v3-2": Finding(
        text="Sequences that the policy has left are masked: it learns more from a sampler that "
        "lags ({old-sampler}); without the division by the spread of rewards a small reward beside "
        "a large one falls below its start ({two-rewards}).",
        better=("old-sampler",),
        worse=("two-rewards",),
    ),
    "deepseekmath-grpo": Finding(
        text="Its KL penalty keeps it nearer to its start ({kl-cost}) and right answers different "
        "({distinct-answers}), and it learns more from a sampler that lags ({old-sampler}); it is "
        "slower at what is rarely answered right ({rarely-right}).",
        better=("kl-cost", "distinct-answers", "old-sampler"),
        worse=("rarely-right",),
    ),
    "demystifying-long-cot": Finding(
        text="Its loss is that of plain GRPO, and so are its numbers ({learns}).",
        alike=("learns",),
    ),
    "dft": Finding(
        text="Trained on right answers of its start it cannot be told from GRPO by its accuracy "
        "({learns}), and it gives fewer different right answers ({distinct-answers}).",
        worse=("distinct-answers",),
        alike=("learns",),
    ),
    "dr-grpo": Finding(
        text="Without the length divisor wrong answers are shorter ({wrong-length}); without "
        "the division by the spread of rewards a small reward beside a large one falls "
        "below its start ({two-rewards}).",
        better=("wrong-length",),
        worse=("two-rewards",),
    ),
    "gdpo": Finding(
        text="Rewards that are scaled apart let it learn a small one beside a large one "
        "({two-rewards}); with one reward it cannot be told from GRPO ({learns}; "
        "{many-updates}; {wrong-length}).",
        better=("two-rewards",),
        alike=("learns", "many-updates", "wrong-length"),
    ),
    "gfpo:8-of-16": Finding(
        text="Trained on the 8 shortest of 16 answers it has shorter wrong ones ({wrong-length}) "
        "and more different right ones ({distinct-answers}), and is slower at what is rarely "
        "answered right ({rarely-right}).",
        better=("wrong-length", "distinct-answers"),
        worse=("rarely-right",),
    ),
    "gmpo": Finding(
        text="The geometric mean of ratios learns more from a sampler of three bits "
        "({low-bit-sampler}) and sooner what is rarely answered right ({rarely-right}); from a "
        "sampler that lags it cannot be told from GRPO ({old-sampler}).",
        better=("low-bit-sampler", "rarely-right"),
        alike=("old-sampler",),
    ),
    "gspo": Finding(
        text="Its narrow clip of one ratio for a whole answer keeps it near its start "
        "({kl-cost}) and diverse ({diversity}), and it learns more slowly "
        "({sample-efficiency}).",
        better=("kl-cost", "diversity"),
        worse=("sample-efficiency",),
    ),
    "gspo-token": Finding(
        text="Its gradient is that of gspo, and like it it learns more slowly "
        "({sample-efficiency}) and keeps right answers different ({distinct-answers}).",
        better=("distinct-answers",),
        worse=("sample-efficiency",),
    ),
    "intellect-2": Finding(
        text="Its clip from both sides cannot be told from that of GRPO ({learns}; {wrong-length}; "
        "{flipped-rewards}).",
        alike=("learns", "wrong-length", "flipped-rewards"),
    ),
    "lite-ppo": Finding(
        text="Its wrong answers are shorter ({wrong-length}) and fewer answers pass a limit "
        "({limit}); scaled by the spread of the whole batch, a small reward beside a large one is "
        "learnt less ({two-rewards}).",
        better=("wrong-length", "limit"),
        worse=("two-rewards",),
    ),
    "luspo": Finding(
        text="Its narrow clip of one ratio for a whole answer keeps right answers different "
        "({distinct-answers}), and it learns more slowly ({sample-efficiency}), from wrong rewards "
        "too ({flipped-rewards}).",
        better=("distinct-answers",),
        worse=("sample-efficiency", "flipped-rewards"),
    ),
    "mis": Finding(
        text="Tokens with weights out of bounds are left out: it learns more from a sampler that "
        "lags ({old-sampler}), and from one of three bits it cannot be told from GRPO "
        "({low-bit-sampler}).",
        better=("old-sampler",),
        alike=("low-bit-sampler",),
    ),
    "ppo": Finding(
        text="With a critic and its KL penalty it goes less far from its start ({kl-cost}) and "
        "stays more diverse ({diversity}); its accuracy cannot be told from GRPO's "
        "({learns}).",
        better=("kl-cost", "diversity"),
        alike=("learns",),
    ),
    "reinforce-plus-plus": Finding(
        text="Advantages on the scale of the whole batch: its wrong answers are shorter "
        "({wrong-length}), fewer answers pass a limit ({limit}), and a small reward beside a large "
        "one is learnt less ({two-rewards}); its accuracy cannot be told from GRPO's ({learns}).",
        better=("wrong-length", "limit"),
        worse=("two-rewards",),
        alike=("learns",),
    ),
    "rloo": Finding(
        text="With its KL penalty it goes less far from its start ({kl-cost}), and its "
        "accuracy cannot be told from GRPO's ({learns}); in many large updates it loses "
        "more of a fragile skill ({many-updates}).",
        better=("kl-cost",),
        worse=("many-updates",),
        alike=("learns",),
    ),
    "sapo": Finding(
        text="A soft gate in place of the clip goes further from its start ({kl-cost}), loses a "
        "fragile skill in many large updates ({many-updates}) and learns less from wrong rewards "
        "({flipped-rewards}); with right ones its accuracy cannot be told from GRPO's ({learns}).",
        worse=("kl-cost", "many-updates", "flipped-rewards"),
        alike=("learns",),
    ),
    "scalerl": Finding(
        text="It goes further from its start ({kl-cost}) with shorter wrong answers "
        "({wrong-length}), and loses more of a fragile skill in many large updates "
        "({many-updates}) and with a sampler that lags ({old-sampler}).",
        better=("wrong-length",),
        worse=("kl-cost", "many-updates", "old-sampler"),
    ),
    "sequence-is": Finding(
        text="Weights of whole answers learn more from a sampler that lags ({old-sampler}) or has "
        "three bits ({low-bit-sampler}); where sampler and trainer agree it cannot be told from "
        "GRPO ({learns}; {many-updates}).",
        better=("old-sampler", "low-bit-sampler"),
        alike=("learns", "many-updates"),
    ),
    "skywork-or1": Finding(
        text="Its wrong answers are shorter ({wrong-length}) and fewer answers pass a limit "
        "({limit}); its accuracy cannot be told from GRPO's ({learns}).",
        better=("wrong-length", "limit"),
        alike=("learns",),
    ),
    "tis": Finding(
        text="With truncated weights it learns more from a sampler that lags ({old-sampler}) "
        "or has three bits ({low-bit-sampler}); where sampler and trainer agree it cannot"
        " be told from GRPO ({learns}; {many-updates}).",
        better=("old-sampler", "low-bit-sampler"),
        alike=("learns", "many-updates"),
    ),
    "two-grpo": Finding(
        text="Groups of two cannot be told from GRPO by what they learn ({learns}; "
        "{sample-efficiency}), and lose more of a fragile skill in many large updates "
        "({many-updates}).",
        worse=("many-updates",),
        alike=("learns", "sample-efficiency"),
    ),
    "vespo": Finding(
        text="It learns more from a sampler that lags ({old-sampler}) or has three bits "
        "({low-bit-sampler}) though it does not read the sampler's probabilities, and gives more "
        "different right answers ({distinct-answers}).",
        better=("old-sampler", "low-bit-sampler", "distinct-answers"),
    ),
}
