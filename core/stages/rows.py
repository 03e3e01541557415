"""The stage of a preparation that makes a data set by letting a model answer prompts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from core.families.family import Making
from core.paper import Reward
from core.preparations.sampled_answers import AnswersConfig
from core.records.files import file_digest, write_atomic
from core.samplers.journal import Journal
from core.settings.effective import effective
from core.settings.resolved import Resolved
from core.stages.answering import Answering
from core.stages.data import ROWS, Data, MadeRows, read_rows, split_rows
from core.stages.evaluate import JOURNAL
from core.stages.loading import Loading, loading_of
from core.stages.stage import Policy
from core.stages.start import Chosen
from core.stages.tools import tools
from eval.grading import GRADER_VERSION
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class Rows(MadeRows):
    """The rows that a family makes of prompts and a model; an interrupted stage continues.

    The ratings of the model in the role `scorer` are a reward beside those of the run.
    """

    name = "rows"
    resolved: Resolved
    data: Data
    answers: Policy
    roles: Mapping[str, Chosen] = field(default_factory=dict[str, Chosen])

    @property
    def inputs(self) -> Mapping[str, object]:
        """The effective settings, the prompts, the model that answers and those in roles."""
        roles = {role: dict(model.inputs) for role, model in self.roles.items()}
        return {
            **effective(self.resolved),
            "data": self.data.key,
            "start": self.answers.key,
            "grader": GRADER_VERSION,  # of the accuracy reward
            **({"roles": roles} if roles else {}),
        }

    @property
    def gives(self) -> tuple[str, ...]:
        """The columns that the family adds."""
        return self.resolved.family.gives

    @property
    def subject(self) -> str:
        """The name of the preparation."""
        return self.resolved.arm

    def work(self, folder: Path) -> Mapping[str, object]:
        """Write the rows; return their number and digest."""
        resolved, loading = self.resolved, loading_of(self.resolved)
        prompts, _ = split_rows(read_rows(self.data.folder), heldout=0)
        answering = Answering(self.answers, loading, resolved.run.threads)
        note = {"stage": self.key, "computed": str(loading)}
        config = cast(AnswersConfig, resolved.build(output_dir=folder, seed=0))
        with (
            Journal(folder / JOURNAL, note) as journal,
            tools(config.answer_mode) as with_tools,
        ):
            sampler = answering.sampler.with_journal(journal)
            making = Making(
                config=config,
                sampler=sampler,
                answerer=with_tools(sampler, journal),
                rewards=(*resolved.run.rewards, *self.ratings(config, loading)),
                rows=prompts,
            )
            rows = resolved.family.rows(making)
        say(f"rows: {len(rows)} of {resolved.arm}")
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_atomic(folder / ROWS, "".join(lines))
        (folder / JOURNAL).unlink()
        return {"rows": len(rows), "digest": file_digest(folder / ROWS)}

    def ratings(self, config: AnswersConfig, loading: Loading) -> list[Reward]:
        """Return the rewards by the models in roles."""
        from core.scoring.rater import RatingReward, load_rater

        return [
            RatingReward(load_rater(model.model, loading, config.step_separator))
            for model in self.roles.values()
        ]
