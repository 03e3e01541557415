"""A policy's solutions of held-out problems, with the scores that models give to them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from core.bounded_templates import Tokenizer
from core.collect.own_solutions import judged, judged_row
from core.collect.rejection import assistant_message, user_message
from core.data.conversations import Row
from core.data.scored_pairs import encode_whole
from core.data.sft import IGNORED
from core.forward.batches import pad_rows
from core.forward.head_scores import label_values, token_scores
from core.preparations.own_solutions import LABELS
from core.rollout.chat import chat_text
from core.samplers.policy import PolicySampler
from core.scoring.reward_quantities import text_rewards
from core.scoring.token_scores import Encoder
from eval.errors import BadValue
from eval.samples.evaluation import Decoding

BATCH = 256  # solutions that are scored together
THRESHOLD = 0.5  # of a score from which on a step counts as right
MODELS = ("start", "trained")
SAMPLED, GREEDY = "held_out", "greedy"  # sets of solutions
NO_ANSWER = -1
Columns: TypeAlias = dict[str, list[float]]


class Solved(NamedTuple):
    """A solution of a problem as a row of `judged_row` with labels of steps, and its answer."""

    problem: int
    row: Row
    answer: int


def draw_solutions(sampler: PolicySampler, rows: Sequence[Row], decoding: Decoding) -> list[Solved]:
    """Return `decoding.samples` solutions of each row, the solutions of a problem side by side.

    Raises:
        BadValue: a prompt is no single user message, or steps cannot be judged.
    """
    prompts = [user_message(row["prompt"]) for row in rows]
    solutions: list[Solved] = []
    samples = sampler(prompts, decoding)
    for place, (row, prompt, of_row) in enumerate(zip(rows, prompts, samples, strict=True)):
        text = chat_text(sampler.tokenizer, prompt)
        for sample in of_row:
            verdict = judged(row["question"], sample.text)
            answer = int(verdict.answer) if verdict.answer else NO_ANSWER
            made = judged_row(row, text, sample.text, verdict, LABELS["steps"])
            solutions.append(Solved(place, made, answer))
    return solutions


@torch.no_grad()
def step_scores(model: nn.Module, encode: Encoder, solutions: Sequence[Solved]) -> list[Tensor]:
    """Return the scores of the labelled tokens of each solution, empty for an empty solution.

    A score is the probability of the label 1, or the value of a model of one number.
    """
    device = next(model.parameters()).device
    places = [place for place, solution in enumerate(solutions) if solution.row["completion"]]
    scores = [torch.empty(0)] * len(solutions)
    for first in range(0, len(places), BATCH):
        part = places[first : first + BATCH]
        rows = [encode(solutions[place].row, place) for place in part]
        ids, mask = pad_rows([row["token_input_ids"] for row in rows], 0)
        logits = token_scores(model, ids.to(device), mask.to(device)).cpu()
        values = label_values(logits)
        for place, row, of_row in zip(part, rows, values.split(mask.sum(1).tolist()), strict=True):
            labels = torch.tensor([*row["token_labels"]])
            scores[place] = of_row[labels != IGNORED]
    return scores


def whole_scores(
    model: nn.Module, tokenizer: Tokenizer, rows: Sequence[Row], solutions: Sequence[Solved]
) -> list[Tensor]:
    """Return the reward of each solution of `rows` as the score of each of its steps.

    A solution without steps has one score.
    """
    texts = [
        {"prompt": rows[s.problem]["prompt"], "answer": assistant_message(str(s.row["completion"]))}
        for s in solutions
    ]
    rewards = text_rewards(model, tokenizer, [encode_whole(t, "answer", tokenizer) for t in texts])
    return [
        reward.expand(max(1, len(solution.row["labels"])))
        for reward, solution in zip(rewards, solutions, strict=True)
    ]


def finite(scores: Sequence[Tensor], name: str) -> Sequence[Tensor]:
    """Return the scores of a model of this name.

    Raises:
        BadValue: a score is not finite.
    """
    for place, of_steps in enumerate(scores):
        if not of_steps.isfinite().all():
            raise BadValue(
                f"{name} scores solution {place} with {of_steps.tolist()}: expected finite "
                "numbers; look for NaN in its weights"
            )
    return scores


def equal_scores(solutions: Sequence[Solved]) -> list[Tensor]:
    """Return the score 1 of each step of each solution, as of a model that tells none apart."""
    return [torch.ones(len(solution.row["labels"])) for solution in solutions]


def solution_columns(
    solutions: Sequence[Solved], scores: Mapping[str, Sequence[Tensor]]
) -> Columns:
    """Return the columns of a set of solutions.

    Args:
        solutions: The solutions.
        scores: For each name of `MODELS` the scores of the steps of each solution. That of the last
            step is the score of the solution; a solution without steps has the score 0.
    """
    rows = [solution.row for solution in solutions]
    columns: Columns = {
        "problem": [solution.problem for solution in solutions],
        "answer": [solution.answer for solution in solutions],
        "is_answered": [int(row["label"]) for row in rows],
        "is_sound": [int(bool(row["labels"]) and all(row["labels"])) for row in rows],
        "steps": [len(row["labels"]) for row in rows],
        "differing": [sum(label != row["label"] for label in row["labels"]) for row in rows],
    }
    for model, of_solutions in scores.items():
        columns[f"{model}_score"] = [
            of_steps[-1].item() if len(of_steps) else 0.0 for of_steps in of_solutions
        ]
        predicted = [(of_steps >= THRESHOLD).tolist() for of_steps in of_solutions]
        columns[f"{model}_as_steps"] = [
            sum(p == label for p, label in zip(steps, row["labels"], strict=False))
            for steps, row in zip(predicted, rows, strict=True)
        ]
        columns[f"{model}_as_outcome"] = [
            sum(p == row["label"] for p in steps)
            for steps, row in zip(predicted, rows, strict=True)
        ]
    return columns
