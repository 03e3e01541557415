"""Ratings of answers by a trained model with a head that scores texts, steps or tokens."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from safetensors import safe_open
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from core.collect.rejection import user_message
from core.data.labelled_solutions import SolutionEncoder
from core.data.labelled_steps import StepEncoder
from core.data.scored_pairs import encode_whole
from core.forward.batches import pad_rows
from core.forward.head_scores import end_scores, label_values, token_scores
from core.models.folders import ADAPTERS
from core.models.load import reach, reading
from core.models.scorers import HEADS as OF_HEADS
from core.models.scorers import (
    REWARD_HEAD,
    STEP_HEAD,
    VALUE_HEAD,
    ScoringHead,
    load_trained_scorer,
)
from core.rewards.completions import Completion, completion_text
from core.rollout.chat import ChatPrompt, chat_messages, chat_text
from eval.errors import BadValue

BATCH = 64  # answers that are rated together
SEPARATOR = "\n"  # ends the steps of an answer unless another text is given
HEADS = (REWARD_HEAD, STEP_HEAD, VALUE_HEAD)


@dataclass(frozen=True)
class Asked:
    """An answer with its prompt: user messages with an optional system message, or plain text."""

    prompt: ChatPrompt
    answer: str
    chat: bool = True
    system: str | None = None


@dataclass(frozen=True)
class Rater:
    """A model that rates answers with one number each, higher for better ones.

    A reward model rates the whole text, a verifier its last token, and a model of steps is asked
    for the probability that the last step is right.

    Attributes:
        name: The name of the model, for messages.
        model: The model, see `HEADS`.
        tokenizer: Its tokenizer, which may be another one than that of the model that answers.
        head: The kind of its head.
        separator: What ends the steps of an answer; empty if each character is a step.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    head: ScoringHead
    separator: str = SEPARATOR

    @torch.no_grad()
    def __call__(self, answers: Sequence[Asked]) -> list[float]:
        """Return the rating of each answer; an answer without a step is rated 0.

        Raises:
            BadValue: a rating is no finite number, the tokenizer has no chat template for a chat,
                or the separator becomes a token with the beginning of a step.
        """
        rows = [self.encode(asked) for asked in answers]
        order = sorted(filter(rows.__getitem__, range(len(rows))), key=lambda i: len(rows[i]))
        ratings = [0.0] * len(rows)
        for first in range(0, len(order), BATCH):
            part = order[first : first + BATCH]
            of_part = self.rate([rows[place] for place in part])
            for place, rating in zip(part, of_part, strict=True):
                ratings[place] = rating
        for asked, rating in zip(answers, ratings, strict=True):
            if not isfinite(rating):
                raise BadValue(
                    f"{self.name} rates {asked.answer[-80:]!r} with {rating}: expected a finite "
                    "number; look for NaN in its weights"
                )
        return ratings

    def encode(self, asked: Asked) -> Sequence[int]:
        """Return the token ids of an answer after its prompt, as the model was trained on."""
        if self.head == REWARD_HEAD:
            return self.encode_text(asked)
        prompt = self.prompt_text(asked)
        if self.head == VALUE_HEAD:
            encode = SolutionEncoder(tokenizer=self.tokenizer)
            row = {"prompt": prompt, "completion": asked.answer, "label": 0}
            return encode(row, 0)["token_input_ids"]
        parts = asked.answer.split(self.separator) if self.separator else [*asked.answer]
        steps = [*filter(None, parts)]
        if not steps:
            return []
        encode_steps = StepEncoder(tokenizer=self.tokenizer, separator=self.separator)
        row = {"prompt": prompt, "completions": steps, "labels": [0] * len(steps)}
        return encode_steps(row, 0)["token_input_ids"]

    def encode_text(self, asked: Asked) -> Sequence[int]:
        """Return the token ids of the conversation, or of the text with its end token."""
        if not (asked.chat and self.tokenizer.chat_template):
            prompt = asked.prompt if isinstance(asked.prompt, str) else self.prompt_text(asked)
            return encode_whole(
                {"prompt": prompt, "answer": asked.answer}, "answer", self.tokenizer
            )
        messages = chat_messages(asked.prompt, asked.system)
        answer = [{"role": "assistant", "content": asked.answer}]
        return encode_whole({"prompt": messages, "answer": answer}, "answer", self.tokenizer)

    def prompt_text(self, asked: Asked) -> str:
        """Return the text of the prompt, up to where the answer begins."""
        if not asked.chat and isinstance(asked.prompt, str):
            return asked.prompt
        return chat_text(self.tokenizer, asked.prompt, asked.system)

    def rate(self, rows: Sequence[Sequence[int]]) -> list[float]:
        """Return the number at the last token of each row of token ids."""
        ids, mask = (each.to(self.model.device) for each in pad_rows(rows, 0))
        if self.head == REWARD_HEAD:
            return end_scores(self.model, ids, mask)[:, 0].tolist()
        ends = mask.sum(1).cumsum(0) - 1
        return label_values(token_scores(self.model, ids, mask)[ends]).tolist()


@dataclass(frozen=True)
class RatingReward:
    """The rating of an answer to a user message as its reward."""

    rater: Rater
    time_limit_s: ClassVar[float] = inf  # that of a forward pass, whatever a text says

    def __call__(
        self, *, prompts: Sequence[Completion], completions: Sequence[Completion], **_: object
    ) -> list[float | None]:
        """Return the rating of each completion.

        Raises:
            BadValue: a prompt is no single user message, or see `Rater`.
        """
        pairs = zip(prompts, completions, strict=True)
        return [*self.rater([Asked(user_message(p), completion_text(c)) for p, c in pairs])]


class ModelLoading(Protocol):
    """Source of tokenizers, with the precision and the device of models that are loaded."""

    @property
    def dtype(self) -> str:
        """The precision of the weights."""
        ...

    @property
    def place(self) -> torch.device:
        """The device."""
        ...

    def tokenizer(self, model: str) -> PreTrainedTokenizerBase:
        """Load the tokenizer of a model by name or folder."""
        ...


def load_rater(name: str, loading: ModelLoading, separator: str | None = None) -> Rater:
    """Load a model that rates answers, by folder or hub id.

    Args:
        name: The folder or hub id.
        loading: The precision, device and chat template of the model.
        separator: What ends the steps of an answer, for a model of steps alone; None for a line
            break.

    Raises:
        BadValue: the model has no head that rates or no weights of it, or a separator is given for
            one without steps.
        DamagedFile, MissingFile, UnknownName: see `core.models.scorers.load_scorer`.
    """
    head = head_of(name)
    if separator is not None and head != STEP_HEAD:
        raise BadValue(
            f"step separator {separator!r}: {name} scores {head.scores}, not steps: leave it out"
        )
    model: Any = load_trained_scorer(name, head, dtype=loading.dtype)  # Any: half typed
    return Rater(
        name,
        model.eval().to(loading.place),
        loading.tokenizer(name),
        head,
        SEPARATOR if separator is None else separator,
    )


def head_of(name: str) -> ScoringHead:
    """Return the kind of head of a saved model or of adapters.

    Raises:
        BadValue: it has none that rates.
        DamagedFile, MissingFile, UnknownName: see `core.models.scorers.load_scorer`.
    """
    place = Path(reach(name))
    with reading(name, str(place)):
        if (place / ADAPTERS).is_file():
            task = json.loads((place / ADAPTERS).read_text(encoding="utf-8")).get("task_type")
            kind, labels = f"adapters of {task}", labels_of_adapters(place)
            fits = [head for head in HEADS if head.task == task]
        else:
            config: Any = AutoConfig.from_pretrained(place, trust_remote_code=False)
            kind, labels = (config.architectures or ["an unknown class"])[0], config.num_labels
            fits = [h for h in HEADS if kind.endswith(h.loader.__name__.removeprefix("AutoModel"))]
    for head in fits:
        if head.labels == labels:
            return head
    raise BadValue(
        f"{name}: {kind} with {labels} labels rates no answers: expected a model that "
        "RewardTrainer, VerifierTrainer or PRMTrainer saved, or any with a head of texts of 1 "
        "label, or of tokens of 1 or 2"
    )


def labels_of_adapters(folder: Path) -> int:
    """Return the number of labels of the head that is saved with adapters, 0 without one."""
    with safe_open(folder / "adapter_model.safetensors", framework="pt") as weights:
        names = weights.keys()
        heads = [key for key in names if any(f".{head}" in key for head in OF_HEADS)]
        return weights.get_slice(heads[0]).get_shape()[0] if heads else 0
