"""The plan of a run: every setting with its source, the stages with their keys, and the cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.families.worlds import world_of_regime
from core.models.folders import count_parameters
from core.models.shapes import GATED, find_shape
from core.rollout.engine import ROWS
from core.run.claim_plans import ClaimPlan, claim_plans
from core.run.visible import visible_effects
from core.settings.layers import layers, named_regime
from core.settings.refusals import refuse
from core.settings.resolved import Resolved
from core.settings.run_settings import TRIAL_SEED
from core.stages.chain import Chain
from core.stages.loading import scoring_of
from core.stages.sources import check_models, model_folder
from core.stages.stage import Stage
from core.verdicts.trials import compared_arms, rate_of, trials_of
from core.verdicts.unmeasured import untested_claims
from eval.errors import BadValue, ReproError
from eval.stats.seeds import Look

if TYPE_CHECKING:  # torch and transformers, which most plans need not wait for
    from core.configs.base import BaseConfig
    from core.settings.memory import Cluster, Memory

PRECISION = {"float32": 4, "bfloat16": 2, "float16": 2}  # bytes of one weight that answers
BYTES = {"weights": 4, "gradients": 4, "AdamW": 8, "reference": 4}  # of one float32 parameter


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run.

    Attributes:
        resolved: The settings.
        seed: The seed.
        stages: The stages, each with its state.
        trials: The trials of learning rates: rate, training stage and state.
        batches: The use of the rows, in words.
        cost: Upper bounds of samples, tokens and memory by name.
        visible: The smallest true effect that each look decides, by claim.
        claims: The gates and the expected effect of each claim that runs test.
        scored_by: The engine that answers benchmarks, with its options.
    """

    resolved: Resolved
    seed: int
    stages: list[tuple[Stage, str]]
    trials: list[tuple[float, Stage, str]]
    batches: str
    cost: Mapping[str, object]
    visible: Mapping[str, list[float]]
    claims: list[ClaimPlan]
    scored_by: Mapping[str, object]

    def as_data(self) -> dict[str, object]:
        """Return the plan as JSON."""
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
            "trials": [
                {"learning_rate": rate, "stage": s.name, "key": s.key, "state": state}
                for rate, s, state in self.trials
            ],
            "batches": self.batches,
            "untestable": untested_claims(self.resolved, self.resolved.arguments),
            "cost": dict(self.cost),
            "visible effects": dict(self.visible),
            "claims": [claim.as_data() for claim in self.claims],
            "scored by": dict(self.scored_by),
        }


def make_plan(resolved: Resolved, seed: int) -> Plan:
    """Return the plan of one arm with one seed; neither model nor data is loaded.

    Raises:
        UnknownName, BadValue: the settings of the paper or the command line are refused.
        UnknownName, MissingFile, DamagedFile: a model does not exist, or a local one is damaged.
    """
    refuse([resolved])
    check_models(resolved.run)
    config, trials = resolved.preview(), plan_trials(resolved)
    return Plan(
        resolved=resolved,
        seed=seed,
        stages=[(s, state_of(s)) for s in Chain(resolved, seed).stages],
        trials=trials,
        batches=plan_batches(config, resolved),
        cost=estimate(resolved, config, len(trials)),
        visible={}
        if resolved.world.is_bare or not resolved.family.trains
        else visible_effects(resolved.paper, resolved.run),
        claims=claim_plans(resolved.paper),
        scored_by=plan_scoring(resolved),
    )


def plan_scoring(resolved: Resolved) -> dict[str, object]:
    """Return how the policy answers benchmarks: engine, precision, device, batch and memory."""
    loading, parameters = scoring_of(resolved), parameters_of(Chain(resolved).pretrained)
    if loading.engine == "server":
        return {"engine": "server", "started by": loading.serve}
    on_cpu = loading.device == "cpu"
    spread = {"GPUs of each layer": loading.tensor_parallel} if loading.record_fields else {}
    return {
        "engine": loading.engine,
        **spread,
        "dtype": loading.dtype,
        "device": loading.device or "the GPU if there is one",
        "answers at a time": ROWS if on_cpu else "as many as its free memory holds",
        "memory of weights, bytes": parameters and parameters * PRECISION[loading.dtype],
    }


def plan_trials(resolved: Resolved) -> list[tuple[float, Stage, str]]:
    """Return the trials of the arm's learning rate, if claims compare the arm."""
    compared = resolved.arm in compared_arms(resolved.paper)
    trials = trials_of(resolved) if compared else []
    stages = [(rate_of(trial), Chain(trial, TRIAL_SEED).train) for trial in trials]
    return [(rate, train, state_of(train)) for rate, train in stages if train is not None]


def state_of(stage: Stage) -> str:
    """Return "done" or "to do"."""
    return "done" if stage.is_done else "to do"


def estimate(resolved: Resolved, config: "BaseConfig", trials: int = 0) -> dict[str, object]:
    """Return upper bounds of samples, tokens and memory of parameters, as far as they are known."""
    cost = resolved.family.cost(config, known_rows(resolved))
    samples = cost.samples if trials else None
    parameters = parameters_of(Chain(resolved).pretrained)
    bytes_per_parameter = sum(BYTES[copy] for copy in cost.copies)
    return {
        "updates": "as many as the data gives" if cost.updates is None else cost.updates,
        cost.unit: cost.samples,
        "sampled tokens, at most": cost.sampled_tokens,
        **({f"{cost.unit} of trials, with --claims": trials * samples} if samples else {}),
        "parameters": parameters or "known once the model is at hand",
        "memory of parameters, bytes": parameters * bytes_per_parameter if parameters else None,
        "runs with --claims": claim_runs(resolved),
    }


def claim_runs(resolved: Resolved) -> str | None:
    """Return the number of runs that the looks at a paper's claims take, in words."""
    paper, looks = (
        resolved.paper,
        [arm_looks(resolved, arm) for arm in resolved.paper.claimed_arms(resolved.scale)],
    )
    first, *later = (sum(look.seeds for look in at_once) for at_once in zip(*looks, strict=True))
    return f"{first}, then at most {' and '.join(map(str, later))}" if paper.claims else None


def arm_looks(resolved: Resolved, arm: str) -> Sequence[Look]:
    """Return the looks of the world of an arm, or of the planned arm if it cannot be resolved."""
    try:
        regime, _ = named_regime(layers(resolved.paper, arm, resolved.scale, {}))
        return world_of_regime(regime).looks
    except ReproError:
        return resolved.world.looks


def plan_memory(resolved: Resolved, cluster: "Cluster") -> "list[Memory]":
    """Return the memory of one GPU under each launch.

    Raises:
        BadValue: the model's sizes are unknown, or the GPUs do not divide the batch.
    """
    from core.settings.memory import all_launches, work_of

    model = Chain(resolved).pretrained
    shape = find_shape(model, model_folder(model))
    if shape is None:
        raise BadValue(
            f"the sizes of {model} are not known here: give the folder of a model that is one of "
            f"{', '.join(GATED)}, as model=/path/to/it"
        )
    return all_launches(shape, work_of(resolved, cluster.count), cluster.count)


def parameters_of(model: str) -> int | None:
    """Return the number of parameters in a local model's files; None for a model of the hub."""
    folder = model_folder(model)
    return folder and count_parameters(folder)


def known_rows(resolved: Resolved) -> int | None:
    """Return the number of training rows; None if it is unknown, or if nothing is trained."""
    return count_rows(resolved) if resolved.family.trains else None


def count_rows(resolved: Resolved) -> int | None:
    """Return the number of training rows without held-out ones; None if it is unknown."""
    rows, held = resolved.rows, resolved.run.heldout_problems if resolved.splits else 0
    return None if rows is None else rows - held


def plan_batches(config: "BaseConfig", resolved: Resolved) -> str:
    """Return how the rows become batches over all processes, in words."""
    family, rows = resolved.family, known_rows(resolved)
    if family.trains and rows is None:
        return "known with the data"
    return family.batches(config, rows or 0, resolved.run.processes, resolved.share)
