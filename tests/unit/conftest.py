"""Trainers over tiny models and papers of other distributions, for the unit tests."""

import sys

import pytest
from grpo_runs import digits, prompts
from online_runs import online_trainer

from core import GRPOConfig, GRPOTrainer
from core.data.generated_sets import POCKET, pocket
from core.data.sets import SETS
from eval.registered import group_entry_points


@pytest.fixture
def make_grpo(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer over a fresh tiny Llama."""

    def build(
        rewards=digits,
        *,
        kind=GRPOTrainer,
        dataset=None,
        model=None,
        evaluation=None,
        rollout=None,
        tokenizer=tiny_tokenizer,
        **changes,
    ):
        settings = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "num_generations": 4,
            "max_completion_length": 8,
            "max_steps": 2,
            "logging_steps": 1,
            "learning_rate": 1e-3,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        return kind(
            model or build_llama(),
            rewards,
            GRPOConfig(**settings | changes),
            prompts() if dataset is None else dataset,
            evaluation,
            processing_class=tokenizer,
            rollout_func=rollout,
        )

    return build


@pytest.fixture
def make_online(build_llama, tiny_tokenizer, tmp_path):
    """Build an online trainer over a fresh tiny Llama: `make_online("XPO", alpha=0.1)`."""
    count = iter(range(99))

    def build(kind="OnlineDPO", *, model=None, **changes):
        folder = tmp_path / f"run-{next(count)}"
        return online_trainer(kind, model or build_llama(), tiny_tokenizer, folder, **changes)

    return build


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution on the path: `install("name", {"slug": "module"}, {"module": text})`.

    `group` is that of its entry points: papers, unless another one is given.
    """
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(distribution, points, modules, group="repro.papers"):
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{slug} = {module}" for slug, module in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
        for name, text in modules.items():
            path = tmp_path / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        group_entry_points.cache_clear()

    yield put
    group_entry_points.cache_clear()


@pytest.fixture
def few_worked(monkeypatch):
    """The data set `pocket-worked` with 75 problems of each suite: encoding all takes seconds."""
    few = pocket("pocket-worked", POCKET, "worked", first=75)
    monkeypatch.setitem(SETS, few.name, few)
