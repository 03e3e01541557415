"""The teacher of a student: loading, checks of its vocabulary, and its place in memory."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, cast

from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from core.distillation.teacher_config import TeacherConfig
from core.forward.batches import Batch, for_teacher
from core.forward.two_heads import Measure, token_numbers
from core.models.denoisers import is_causal
from core.models.load import load_tokenizer
from core.shards.reference import frozen_copy
from core.shards.sharding import gather_weights, spread_weights, without_weights
from core.trainers.attributes import with_settings
from core.trainers.base import BaseTrainer
from core.trainers.setup import named_model
from eval.errors import BadValue, ReproError

NUMBERS = "distilled"  # column of a batch with the numbers of `Teacher.numbers` (B, T, K)
logger = logging.get_logger(__name__)


class Teacher(NamedTuple):
    """The teacher of a trainer.

    Attributes:
        model: The model, perhaps sharded.
        frame: The model without weights if it is sharded, see `gather_weights`.
    """

    model: PreTrainedModel
    frame: PreTrainedModel | None

    def whole(self) -> AbstractContextManager[PreTrainedModel]:
        """Return a context with the model whole; all processes have to enter it together."""
        return gather_weights(self.model, self.frame)

    def numbers(
        self, student: nn.Module, batch: Batch, temperature: float, measure: Measure
    ) -> Tensor:
        """Return numbers of both models at each token of a batch (B, T, K), see `token_numbers`."""
        with self.whole() as teacher:
            teacher_batch = for_teacher(batch)
            return token_numbers(student, teacher, batch, teacher_batch, temperature, measure)


class TeacherAttributes:
    """Attributes of TRL's trainers with a teacher: the teacher, and settings under their names."""

    teacher: Teacher

    def __init_subclass__(cls, **keywords: object):
        super().__init_subclass__(**keywords)
        if (settings := vars(cls).get("settings")) is not None:
            with_settings(cls, settings)

    @property
    def teacher_model(self) -> PreTrainedModel:
        """The teacher; of sharded weights, its share of this process."""
        return self.teacher.model


class TeacherSource(Protocol):
    """Source of a trainer's teacher, which is placed after the student is built."""

    def shared_tokens(self, tokenizer: PreTrainedTokenizerBase, student: PreTrainedModel) -> int:
        """Return the number of tokens that both heads have, see `check_vocabularies`."""
        ...

    def placed(self, trainer: BaseTrainer) -> Teacher:
        """Return the teacher, placed as the student of a trainer is."""
        ...


class OtherModel:
    """Another model than the student as its teacher, loaded before the student.

    Args:
        teacher: The model, its name, or None if `args` name it.
        student: The student, or its name.
        args: Settings of the trainer.

    Raises:
        BadValue, DamagedFile, MissingFile, UnknownName: see `load_teacher`.
    """

    def __init__(
        self,
        teacher: str | PreTrainedModel | None,
        student: str | PreTrainedModel,
        args: TeacherConfig,
    ):
        self.model = load_teacher(teacher, student, args)
        self.name, self.args = teacher_name(teacher, args), args

    def shared_tokens(self, tokenizer: PreTrainedTokenizerBase, student: PreTrainedModel) -> int:
        """Return the number of tokens that both heads have, see `check_vocabularies`."""
        tokens = teacher_vocabulary(self.name, self.args)
        return check_vocabularies(tokenizer, tokens, student, self.model)

    def placed(self, trainer: BaseTrainer) -> Teacher:
        """Return the teacher, frozen and sharded as the student of a trainer is."""
        model = self.model.eval().requires_grad_(False)
        if trainer.frame is None:
            cast(nn.Module, model).to(trainer.args.device)
            return Teacher(model, None)
        with gather_weights(model, without_weights(model)) as whole:  # ZeRO-3 may have cut it
            frame, shared = without_weights(whole), cast(PreTrainedModel, frozen_copy(whole))
        spread_weights(shared, trainer.args.device)
        return Teacher(shared, frame)


def load_teacher(
    teacher: str | PreTrainedModel | None,
    student: str | PreTrainedModel,
    args: TeacherConfig,
) -> PreTrainedModel:
    """Return a given teacher after checking it, or load the teacher of a name.

    Raises:
        BadValue: there is none, or there are two of different names; it is the student itself, no
            causal language model, or loaded, and keywords are given.
        BadValue, DamagedFile, MissingFile, UnknownName: it cannot be loaded, see `load_policy`.
    """
    name = args.teacher_model_name_or_path
    if (teacher is None) == (name is None) and not (teacher and teacher == name):
        raise BadValue(
            f"there {'is no teacher' if teacher is None else 'are two teachers'}: give the trainer "
            "a teacher_model, or set teacher_model_name_or_path"
        )
    chosen = name if teacher is None else teacher
    if isinstance(chosen, str):
        return named_model(chosen, args, args.teacher_keywords)
    model = without_wrapper(chosen)
    check_loaded(model, student, args)
    return model


def without_wrapper(teacher: object) -> PreTrainedModel:
    """Return a loaded teacher; of peft's wrapper the model inside, with the adapters in its layers.

    Raises:
        BadValue: it is no model, or its adapters are virtual tokens.
    """
    model: Any = teacher  # Any: peft is of an extra
    if is_wrapped := isinstance(teacher, nn.Module) and hasattr(teacher, "get_base_model"):
        model = model.get_base_model()
    if not isinstance(model, PreTrainedModel):
        raise BadValue(
            f"teacher_model is a {type(teacher).__name__}: expected a model, or the name of one"
        )
    if is_wrapped and cast(Any, teacher).active_peft_config.is_prompt_learning:
        raise BadValue("teacher_model has adapters of virtual tokens: expected none, or LoRA")
    return model


def check_loaded(
    teacher: PreTrainedModel, student: str | PreTrainedModel, args: TeacherConfig
) -> None:
    """Refuse a loaded teacher with keywords of loading, with the student's weights, or no decoder.

    Raises:
        BadValue: it is such a teacher.
    """
    if args.teacher_keywords:
        raise BadValue(
            "teacher_model_init_kwargs and teacher_model_revision are for a teacher given by name, "
            "and teacher_model is a loaded model: leave them out"
        )
    own = set() if isinstance(student, str) else {id(p) for p in student.parameters()}
    if teacher is student or any(id(p) in own for p in teacher.parameters()):
        raise BadValue(
            "`model` and `teacher_model` cannot be the same object or share weights: the teacher "
            "stays as it is while the student moves; load it twice"
        )
    if teacher.get_output_embeddings() is None or not is_causal(teacher):
        raise BadValue(
            f"teacher_model is a {type(teacher).__name__}: expected a causal language model"
        )


def teacher_name(teacher: str | PreTrainedModel | None, args: TeacherConfig) -> str:
    """Return the name or folder of a teacher, empty for a model without one."""
    chosen = args.teacher_model_name_or_path if teacher is None else teacher
    return str(chosen if isinstance(chosen, str) else getattr(chosen, "name_or_path", ""))


def teacher_vocabulary(name: str, args: TeacherConfig) -> Mapping[str, int] | None:
    """Return the tokens of a teacher by its own tokenizer; None if no tokenizer can be loaded."""
    try:
        return load_tokenizer(name, trust_code=args.trust_remote_code).get_vocab() if name else None
    except ReproError as error:
        logger.warning(f"the tokens of the teacher are taken for the student's: {error}")
        return None


def check_vocabularies(
    tokenizer: PreTrainedTokenizerBase,
    other: Mapping[str, int] | None,
    student: PreTrainedModel,
    teacher: PreTrainedModel,
) -> int:
    """Return the number of tokens that both heads have; refuse a teacher of other tokens.

    Rows of a head beyond the tokenizer's tokens may differ in number.

    Args:
        tokenizer: The student's.
        other: The tokens of the teacher; None if they are unknown.
        student: The student.
        teacher: The teacher.

    Raises:
        BadValue: a token differs, or a head is smaller than the vocabulary.
    """
    own = tokenizer.get_vocab()
    advice = "the loss compares the probabilities of equal tokens; take a teacher of one tokenizer"
    if other is not None and other != own:
        by_id, theirs = ({i: token for token, i in x.items()} for x in (own, other))
        first = min(i for i in by_id.keys() | theirs.keys() if by_id.get(i) != theirs.get(i))
        raise BadValue(
            f"token {first} is {by_id.get(first)!r} for the student and {theirs.get(first)!r} for "
            f"the teacher: {advice}"
        )
    used = max(own.values()) + 1
    rows = {"student": head_rows(student), "teacher": head_rows(teacher)}
    for role, count in rows.items():
        if count < used:
            raise BadValue(f"the {role}'s head has {count} rows for {used} tokens: {advice}")
    return min(rows.values())


def head_rows(model: PreTrainedModel) -> int:
    """Return the number of tokens that a model gives logits."""
    return int(model.config.get_text_config().vocab_size)
