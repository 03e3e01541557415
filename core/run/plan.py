"""What a run would do: every setting with its source, the stages with their keys, and the cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from core.explain.batch_plan import batch_plan
from core.models.shapes import GATED, find_shape
from core.run.memory import Cluster, Memory, Work, all_launches
from core.run.records.verdicts import cannot_test
from core.run.resolve import Resolved, divided
from core.run.stages.inputs import arm_stages, model_folder, start_stages
from core.run.stages.stage import DONE, Stage
from eval.errors import BadValue

BYTES = {"weights": 4, "gradients": 4, "AdamW": 8, "reference": 4}  # of one float32 parameter
POCKET_ROWS = 12_000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run before it runs."""

    resolved: Resolved
    seed: int
    stages: list[tuple[Stage, str]]
    batches: str
    cost: Mapping[str, Any]

    def as_data(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            "paper": self.resolved.paper.slug,
            "arm": self.resolved.arm,
            "scale": self.resolved.scale,
            "seed": self.seed,
            "settings": {
                name: {"value": v.value, "source": v.source}
                for name, v in self.resolved.values.items()
            },
            "stages": [
                {"stage": s.name, "key": s.key, "state": state, "inputs": dict(s.inputs)}
                for s, state in self.stages
            ],
            "batches": self.batches,
            "untestable": cannot_test(self.resolved.paper, self.resolved.run),
            "cost": dict(self.cost),
        }


def make_plan(resolved: Resolved, seed: int) -> Plan:
    """The plan of one arm with one seed; loads neither model nor data."""
    config = resolved.preview()
    stages = {s.key: s for s in (*start_stages(resolved), *arm_stages(resolved, seed))}
    order = ("data", "start", "train", "eval")
    ordered = sorted(stages.values(), key=lambda stage: order.index(stage.name))
    return Plan(
        resolved=resolved,
        seed=seed,
        stages=[(s, "done" if (s.folder / DONE).is_file() else "to do") for s in ordered],
        batches=_batches(config, resolved),
        cost=estimate(resolved, config),
    )


def estimate(resolved: Resolved, config: Any) -> dict[str, Any]:
    """Upper bounds: completions, tokens and memory of the parameters, where they can be known."""
    per_update = config.per_device_train_batch_size * config.gradient_accumulation_steps
    per_update *= config.world_size
    updates = config.max_steps if config.max_steps > 0 else None
    completions = per_update * updates / config.num_iterations if updates else None
    parameters = count_parameters(resolved.run.model)
    reference = config.keeps_reference
    each = sum(size for part, size in BYTES.items() if reference or part != "reference")
    return {
        "updates": updates or "as many as the data gives",
        "completions": int(completions) if completions else None,
        "sampled tokens, at most": int(completions * config.max_completion_length)
        if completions
        else None,
        "parameters": parameters or "known once the model is at hand",
        "memory of parameters, bytes": parameters * each if parameters else None,
    }


def plan_memory(resolved: Resolved, cluster: Cluster) -> list[Memory]:
    """The memory of one of the GPUs under each launch.

    Raises:
        BadValue: the model's sizes are not known here, or the GPUs do not divide the batch.
    """
    model = resolved.run.model
    shape = find_shape(model, model_folder(model))
    if shape is None:
        raise BadValue(
            f"the sizes of {model} are not known here: give the folder of a model that is one of "
            f"{', '.join(GATED)}, as model=/path/to/it"
        )
    return all_launches(shape, Work.of(resolved, cluster.count), cluster.count)


def count_parameters(model: str) -> int | None:
    """The parameters in a local model's files, without loading them; None for a hub model."""
    folder = model_folder(model)
    if folder is None:
        return None
    shapes = [shape for path in folder.glob("*.safetensors") for shape in _shapes(path)]
    return sum(map(prod, shapes)) or None


def _shapes(path: Path) -> list[list[int]]:
    """The shapes of a safetensors file: eight bytes of length, then a JSON header."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
    return [entry["shape"] for name, entry in header.items() if name != "__metadata__"]


def _batches(config: Any, resolved: Resolved) -> str:
    rows = POCKET_ROWS if resolved.run.data == "pocket" else None
    processes = resolved.run.processes
    shared: Any = SimpleNamespace(**(vars(config) | divided(resolved.config, processes)))
    return str(batch_plan(shared, rows, processes)) if rows else "known with the data"
