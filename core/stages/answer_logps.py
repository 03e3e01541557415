"""Numbers of stored samples: their log-probabilities under the policy that gave them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from eval.samples.store import Sample, Weighed
from eval.terminal import say

if TYPE_CHECKING:  # torch and transformers, see `core.stages.loading`
    from core.data.sources import Row
    from core.samplers.policy import PolicySampler


def with_logps(
    samples: Sequence[Sample],
    sampler: "PolicySampler",
    prompts: Mapping[str, str],
    system: str | None = None,
) -> list[Weighed]:
    """Return samples with their log-probabilities under a policy.

    The text of a sample is encoded again, with the end token behind it. A log-probability is the
    sum over these tokens at temperature 1, in single precision.

    Args:
        samples: of the policy.
        sampler: the policy.
        prompts: by the id of the problem.
        system: the system prompt.
    """
    from core.forward.quantities import completion_logps

    distinct = [*dict.fromkeys((prompts[sample.id], sample.output) for sample in samples)]
    say(f"log-probabilities of {len(distinct)} distinct answers")
    rows = [conversation(prompt, output, system) for prompt, output in distinct]
    logps = completion_logps(sampler.model.eval(), sampler.tokenizer, rows)
    sums = {text: float(row.sum().float()) for text, row in zip(distinct, logps, strict=True)}
    return [
        Weighed(**asdict(sample), logp=sums[prompts[sample.id], sample.output])
        for sample in samples
    ]


def conversation(prompt: str, answer: str, system: str | None) -> "Row":
    """Return a prompt and its answer as messages."""
    first = [] if system is None else [{"role": "system", "content": system}]
    return {
        "prompt": [*first, {"role": "user", "content": prompt}],
        "completion": [{"role": "assistant", "content": answer}],
    }
