"""A model's own solutions of prompts, judged step by step."""

import re
from collections.abc import Sequence

from core.collect.rejection import decoding, user_message
from core.data.conversations import Row
from core.preparations.own_solutions import LABELS, OwnSolutionsConfig, StepLabels
from core.rewards.verifiers import spread
from core.rollout.chat import chat_text
from core.samplers.policy import PolicySampler
from eval.errors import BadValue
from eval.nano.running_sums import LENGTH, JudgedSums, judge_sums

OF_DIGITS = re.compile(rf"\d{{{LENGTH}}}=")  # a question of the nano task `digits`


def judged(question: object, solution: str) -> JudgedSums:
    """Return a solution with the verdicts on its steps and its answer.

    Raises:
        BadValue: no rule says which steps of a solution of this question are right.
    """
    if not isinstance(question, str) or not OF_DIGITS.fullmatch(question):
        raise BadValue(
            f"question {question!r:.80}: expected one of nano-digits, {LENGTH} digits and '=', "
            "whose steps can be judged"
        )
    return judge_sums(question, solution)


def judged_rows(
    sampler: PolicySampler, config: OwnSolutionsConfig, rows: Sequence[Row]
) -> list[dict[str, object]]:
    """Sample solutions of `num_prompts` rows, spread evenly; return a row of each.

    Its prompt is the text that the model reads, see `judged_row`. Empty solutions are left out.

    Raises:
        BadValue: a prompt is no single user message, steps cannot be judged, or all solutions are
            empty.
    """
    sampled_rows = spread(rows, config.num_prompts or len(rows))
    prompts = [user_message(row["prompt"]) for row in sampled_rows]
    made = [
        judged_row(
            row,
            chat_text(sampler.tokenizer, prompt),
            sample.text,
            judged(row["question"], sample.text),
            LABELS[config.labels_by],
        )
        for row, prompt, of_row in zip(
            sampled_rows, prompts, sampler(prompts, decoding(config)), strict=True
        )
        for sample in of_row
    ]
    solved = [row for row in made if row["completion"]]
    if not solved:
        raise BadValue(f"all {len(made)} solutions are empty: sample from a model that solves some")
    return solved


def judged_row(
    row: Row, prompt: str, solution: str, verdict: JudgedSums, labels: StepLabels
) -> dict[str, object]:
    """Return a row with a judged solution of it.

    The `prompt` is the one given. The steps are its `completions` with their `labels`, the solution
    its `completion` with whether its answer is right as `label`.
    """
    return {
        **row,
        "prompt": prompt,
        "completions": [*verdict.steps],
        "labels": [*labels.of(verdict)],
        "completion": solution,
        "label": verdict.is_answered,
    }
