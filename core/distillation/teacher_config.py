"""Settings of the teacher, of every trainer that has one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.configs.rollout import RolloutConfig
from core.option import option


@dataclass
class TeacherConfig(RolloutConfig):
    """Settings of rollouts and of how a teacher is loaded."""

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [
        *RolloutConfig._VALID_DICT_FIELDS,
        "teacher_model_init_kwargs",
    ]

    teacher_model_name_or_path: str | None = option(
        None, "Teacher by name or folder, if the trainer is given none."
    )
    teacher_model_revision: str | None = option(None, "Revision of a teacher given by name.")
    teacher_model_init_kwargs: dict[str, Any] | str | None = option(
        None, "Keywords of `from_pretrained` when the teacher is given by name."
    )

    @property
    def teacher_keywords(self) -> dict[str, object]:
        """Keywords of `from_pretrained` for a teacher given by name."""
        given = self.teacher_model_init_kwargs
        keywords = dict(given) if isinstance(given, Mapping) else {}
        revision = self.teacher_model_revision
        return keywords if revision is None else {"revision": revision, **keywords}
