"""Hints in a teacher's prompt: a completion that succeeded, and feedback."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from core.distillation.hints import rewritten
from core.distillation.sdpo_config import SDPOConfig
from core.rewards.completions import Completion

OPEN, CLOSE = "<think>", "</think>"


class Hint(NamedTuple):
    """Hint for the teacher of one completion.

    Attributes:
        solution: Number of the completion that succeeded, among all of the rollout, if any.
        feedback: Feedback on the completion itself, if any.
    """

    solution: int | None
    feedback: str | None

    @property
    def is_given(self) -> bool:
        """True if there is any; without it, teacher and student see the same."""
        return self.solution is not None or self.feedback is not None


def hints_of(
    rewards: Sequence[float], group: int, feedback: Sequence[str | None], args: SDPOConfig
) -> list[Hint]:
    """Return the hint of each completion; arXiv 2601.20802.

    The solution is the first other completion of the group with `success_reward_threshold`.

    Args:
        rewards: Sum of the rewards of each completion.
        group: Completions of a prompt, which follow each other.
        feedback: Feedback on each completion.
        args: Settings of the trainer.
    """
    hints: list[Hint] = []
    for i, own in enumerate(feedback):
        start = i - i % group
        others = [
            j
            for j in range(start, start + group)
            if rewards[j] >= args.success_reward_threshold
            and not (args.dont_reprompt_on_self_success and j == i)
        ]
        solution = others[0] if others and args.use_successful_as_teacher else None
        is_told = args.include_environment_feedback and not (
            args.environment_feedback_only_without_solution and solution is not None
        )
        hints.append(Hint(solution, (own or None) if is_told else None))
    return hints


def hinted_prompt(
    prompt: Completion, hint: Hint, texts: Sequence[str], args: SDPOConfig
) -> Completion:
    """Return the teacher's prompt, see `prompt_with`; without a hint it is the student's."""
    write = partial(prompt_with, hint=hint, texts=texts, args=args)
    return rewritten(prompt, write) if hint.is_given else prompt


def prompt_with(prompt: str, hint: Hint, texts: Sequence[str], args: SDPOConfig) -> str:
    """Return the text of a teacher's prompt; `texts` are all completions of the rollout."""
    solution = feedback = ""
    if hint.solution is not None:
        shown = texts[hint.solution]
        if args.remove_thinking_from_demonstration:
            shown = without_thoughts(shown)
        solution = args.solution_template.format(successful_previous_attempt=shown)
    if hint.feedback is not None:
        feedback = args.feedback_template.format(feedback_raw=hint.feedback)
    return args.reprompt_template.format(prompt=prompt, solution=solution, feedback=feedback)


def without_thoughts(text: str) -> str:
    """Return a text without what stands between `<think>` and the next `</think>`."""
    kept: list[str] = []
    place = 0
    while (start := text.find(OPEN, place)) >= 0 and (end := text.find(CLOSE, start)) >= 0:
        kept.append(text[place:start])
        place = end + len(CLOSE)
    return "".join([*kept, text[place:]]).strip()
