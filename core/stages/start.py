"""The start stage, which checks the starting model before anything is trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.models.builds import build_of
from core.models.chat_templates import template_text
from core.models.packaged import PACKAGED, packaged_version
from core.records.files import folder_files
from core.settings.canonical import digest_of
from core.stages.sources import model_folder, model_version
from core.stages.stage import Policy
from eval.terminal import say


@dataclass(frozen=True)
class Chosen:
    """A model that a setting names, or the model that a preparation of that name trains.

    A shipped model may have several builds, of which the run's seed selects one.
    """

    name: str
    trained: Policy | None = None
    seed: int = 0

    @property
    def model(self) -> str:
        """The folder or name of the model: the seed's build, or the output of the preparation."""
        return self.trained.model if self.trained else build_of(self.name, self.seed)

    @property
    def build(self) -> Mapping[str, str]:
        """The name of the seed's build as a field of the record, if it differs from `name`."""
        build = build_of(self.name, self.seed)
        return {} if build == self.name else {"build": build}

    @property
    def inputs(self) -> Mapping[str, object]:
        """The name and version of the model, or the key of the preparation's training."""
        if self.trained is not None:
            return {"trained": self.trained.key}
        return {"model": self.model, "version": model_version(self.model)}


@dataclass(frozen=True)
class Start(Policy):
    """The model that a run begins with."""

    name = "start"
    chosen: Chosen
    chat_template: str | None = None
    kernels: Mapping[str, str] = field(default_factory=dict[str, str])
    trust_code: bool = False
    denoises: bool = False  # whether it is a model that reads in both directions

    @property
    def model(self) -> str:
        """The folder of the model, or its name."""
        return self.chosen.model

    @property
    def inputs(self) -> Mapping[str, object]:
        """The model, its kernels on the CPU, and the chat template if one is set.

        The keys of later stages include these through the key of this stage.
        """
        source = self.chat_template
        template = {} if source is None else {"chat_template": template_text(source)}
        kernels = {"kernels": self.kernels} if self.kernels else {}
        return {**self.chosen.inputs, **template, **kernels}

    @property
    def subject(self) -> str:
        """The name of the seed's build, or of the model as the setting has it."""
        return self.chosen.build.get("build", self.chosen.name)

    def work(self, folder: Path) -> Mapping[str, object]:  # noqa: ARG002 - it leaves no files
        """Load the model once; return its name, digest and number of parameters."""
        from transformers.utils import logging

        from core.models.denoisers import load_denoiser
        from core.models.fit import check_finite, check_vocabulary
        from core.models.load import load_policy, load_tokenizer
        from core.rollout.chat import chat_text

        logging.disable_progress_bar()  # there is one of ours
        tokenizer = load_tokenizer(self.model, self.chat_template, trust_code=self.trust_code)
        chat_text(tokenizer, "?")  # or it ends here, before any training
        if self.denoises:
            model = load_denoiser(self.model, trust_remote_code=self.trust_code)
        else:
            model = load_policy(self.model, trust_code=self.trust_code)
        check_vocabulary(tokenizer, model)
        check_finite(self.model, model)
        files = model_folder(self.model)
        digest = digest_of(folder_files(files)) if files else None
        size = sum(p.numel() for p in model.parameters())
        say(f"start: {self.subject}, {size:,} parameters")
        return {
            "name": self.chosen.name,
            "digest": packaged_version(self.model) if self.model in PACKAGED else digest,
            "parameters": size,
            **self.chosen.build,
        }
