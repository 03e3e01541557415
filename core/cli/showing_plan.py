"""`repro plan`: the stages of a run, the source of each setting, cost and memory."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.loading import load_configs
from core.cli.options import AsJson, takes
from core.cli.output import print_columns, print_json, print_text
from core.cli.run_options import RunOptions
from core.paper.registry import find_paper
from core.settings.canonical import as_text
from eval.errors import BadValue

if TYPE_CHECKING:
    from core.run.claim_plans import ClaimPlan
    from core.run.plan import Plan
    from core.settings.memory import Cluster, Memory
    from core.settings.resolved import Resolved


@dataclass(frozen=True, kw_only=True)
class PlanOptions(RunOptions):
    """Options of `repro plan`."""

    gpus: Annotated[
        str | None, typer.Option(metavar="NxKIND", help="Memory on these GPUs, e.g. 8xH100.")
    ] = None
    as_json: AsJson = False
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print a file for --config.")] = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_yaml:
            raise BadValue("--json with --yaml: leave one out")

    @property
    def cluster(self) -> "Cluster | None":
        """The GPUs whose memory is planned, if any."""
        if self.gpus is None:
            return None
        from core.settings.memory import Cluster

        return Cluster.parse(self.gpus)

    def load_configs(self) -> None:
        """Load the configs of the paper, without torch unless a file or memory is asked for."""
        if self.paper is None or self.config is not None or self.gpus is not None:
            return super().load_configs()
        return load_configs([find_paper(self.paper)], self.arguments)


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Show what would run: settings that are no defaults, stages with keys, cost."""
    requested = options.requested()
    paper = find_paper(requested.paper)
    from core.run.plan import make_plan, plan_memory
    from core.settings.resolve import resolve

    resolved = resolve(paper, arm=requested.arm, scale=requested.at, arguments=requested.arguments)
    if options.as_yaml:
        from core.settings.run_file import run_as_yaml

        return print_text(run_as_yaml(resolved, requested.seed), end="")
    run_plan = make_plan(resolved, requested.seed)
    cluster = options.cluster
    memory = plan_memory(resolved, cluster) if cluster else []
    if options.as_json:
        rows = [asdict(m) | {"peak": m.peak, "fits": m.fits(cluster)} for m in memory if cluster]
        return print_json(run_plan.as_data() | ({"memory": rows} if rows else {}))
    print_text(f"{paper.slug}, arm {resolved.arm}, at {requested.at}, seed {requested.seed}\n")
    print_plan(resolved, run_plan)
    return print_memory(cluster, memory) if cluster else None


def print_plan(resolved: "Resolved", run_plan: "Plan") -> None:
    """Print the non-default settings, batches, stages, cost, and claims without a verdict."""
    from core.verdicts.unmeasured import untested_claims

    values = sorted(resolved.values.items())
    print_columns(
        ("setting", "value", "from"), [(n, as_text(v.value), v.source) for n, v in values]
    )
    if resolved.caution:
        print_text(f"\n{resolved.caution}")
    print_text(f"\n{run_plan.batches}\n")
    print_columns(
        ("stage", "key", "state", "of"),
        [(s.name, s.key, state, s.subject) for s, state in run_plan.stages],
    )
    if run_plan.trials:
        rows = [(f"{rate:.3g}", stage.key, state) for rate, stage, state in run_plan.trials]
        print_text(f"\nwith --claims, {len(rows)} trainings more choose the learning rate")
        print_columns(("on trial", "key", "state"), rows)
    for title, fields in (("cost", run_plan.cost), ("scored by", run_plan.scored_by)):
        print_text()
        print_columns((title, ""), [(k, v) for k, v in fields.items() if v is not None])
    if resolved.paper.not_run:
        print_text(f"\nnot run here: {resolved.paper.not_run}")
    if untestable := untested_claims(resolved, resolved.arguments):
        print_text()
        print_columns(("claim without a verdict at these settings", "why"), untestable.items())
    if run_plan.visible:
        print_visible(run_plan.visible, [look.seeds for look in resolved.world.looks])
    if run_plan.claims:
        print_claims(run_plan.claims)


def print_visible(effects: Mapping[str, Sequence[float]], seeds: Sequence[int]) -> None:
    """Print the effect that each claim's comparison decides at each look, in points.

    Args:
        effects: The effect at each look, by claim.
        seeds: The number of seeds of each look.
    """
    looks = [f"{count} seeds" for count in seeds]
    rows = [(slug, *(f"{effect:.1f}" for effect in row)) for slug, row in effects.items()]
    print_text()
    print_columns(("effect in points that is decided in 4 of 5 cases", *looks), rows)


def print_claims(claims: "Sequence[ClaimPlan]") -> None:
    """Print the gates of claims, and the seeds that their expected effects take."""
    gates = [(plan.claim, *gate) for plan in claims for gate in plan.gates]
    effects = [
        (plan.claim, f"{e.effect:+g}", f"{e.spread:g}", plan.seeds or "over 1,000")
        for plan in claims
        if (e := plan.expects) is not None
    ]
    tables = {
        ("gate of a claim", "verdict below it", "holds of the mean over seeds"): gates,
        ("claim", "expected effect", "spread", "seeds for 80 % power"): effects,
    }
    for headings, rows in tables.items():
        if rows:
            print_text()
            print_columns(headings, rows)


def print_memory(cluster: "Cluster", memory: "list[Memory]") -> None:
    """Print the memory that each launch needs on one GPU, in GB, and whether it fits."""
    from core.families.family import PROMPT_TOKENS
    from core.settings.memory import GB, GPUS, USABLE

    parts = (
        "weights", "gradients", "optimiser", "reference", "activations", "autocast", "gathered",
        "kv_cache", "training", "sampling",
    )  # fmt: skip
    rows = [
        (
            need.launch,
            *(f"{getattr(need, part) / GB:.1f}" for part in parts),
            "yes" if need.fits(cluster) else "no",
        )
        for need in memory
    ]
    print_text()
    print_columns((f"GB on each of {cluster.count}", *parts, "fits"), rows)
    print_text(
        f"fits: the larger of training and sampling is at most {USABLE:.0%} of the {cluster.gpu}'s "
        f"{GPUS[cluster.gpu]} GB; prompts of {PROMPT_TOKENS} tokens, all completions at full length"
    )
