"""The start stage: the starting model, looked at before anything is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.models.load import SHIPPED, build_of, load_policy, load_tokenizer
from core.rollout.chat import chat_text
from core.run.files import digest_of, folder_files
from core.run.stages.sources import model_folder, model_version
from core.run.stages.stage import Policy


@dataclass(frozen=True)
class Start(Policy):
    """A model by its name or folder, or what a preparation of that name trains."""

    name = "start"
    chosen: str
    trained: Policy | None = None
    seed: int = 0

    @property
    def model(self) -> str:
        """The seed's build of what was chosen, or where the preparation leaves it."""
        return self.trained.model if self.trained else build_of(self.chosen, self.seed)

    @property
    def inputs(self) -> Mapping[str, object]:
        """The model and its files, or the preparation by whatever name."""
        if self.trained is not None:
            return {"trained": self.trained.key}
        return {"model": self.model, "version": model_version(self.model)}

    @property
    def of(self) -> str:
        """The model as it was chosen."""
        return self.chosen

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Load it once; name, digest and number of parameters."""
        chat_text(load_tokenizer(self.model), "?")  # or it ends here, before any training
        model = load_policy(self.model)
        files = model_folder(self.model)
        return {
            "name": self.chosen,
            "digest": digest_of(folder_files(files)) if files else None,
            "parameters": sum(p.numel() for p in model.parameters()),
            **(
                {"build": self.model} if self.model in SHIPPED and self.model != self.chosen else {}
            ),
        }
