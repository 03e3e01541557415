"""`repro plan`: what would run, where each setting came from, what it costs and needs."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.options import Arm, AsJson, Launch, Processes, Seed, Settings
from core.cli.output import print_columns, print_json, print_text
from core.cli.running import Config, MaybeAt, Named, asked_run, with_launch
from core.paper.registry import find_paper
from core.settings.canonical import as_text
from eval.errors import BadValue

if TYPE_CHECKING:
    from core.run.plan import Plan
    from core.settings.memory import Cluster, Memory
    from core.settings.resolve import Resolved

Gpus = Annotated[
    str | None, typer.Option(metavar="NxKIND", help="Memory on these GPUs, e.g. 8xH100.")
]


def plan(
    paper: Named = None,
    settings: Settings = None,
    at: MaybeAt = None,
    arm: Arm = None,
    seed: Seed = None,
    launch: Launch = None,
    processes: Processes = None,
    gpus: Gpus = None,
    config: Config = None,
    as_json: AsJson = False,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print a file for --config.")] = False,
) -> None:
    """Show what would run: settings that are no defaults, stages with keys, cost."""
    asked = asked_run(paper, with_launch(settings, launch, processes), at, arm, seed, config)
    of = find_paper(asked.paper)
    if as_json and as_yaml:
        raise BadValue("--json with --yaml: leave one out")
    from core.run.plan import make_plan, plan_memory
    from core.settings.memory import Cluster
    from core.settings.resolve import resolve

    resolved = resolve(of, arm=asked.arm, scale=asked.at, arguments=asked.arguments)
    if as_yaml:
        from core.settings.run_file import run_as_yaml

        return print_text(run_as_yaml(resolved, asked.seed), end="")
    found = make_plan(resolved, asked.seed)
    cluster = Cluster.parse(gpus) if gpus else None
    memory = plan_memory(resolved, cluster) if cluster else []
    if as_json:
        rows = [asdict(m) | {"peak": m.peak, "fits": m.fits(cluster)} for m in memory if cluster]
        return print_json(found.as_data() | ({"memory": rows} if rows else {}))
    print_text(f"{of.slug}, arm {resolved.arm}, at {asked.at}, seed {asked.seed}\n")
    print_plan(resolved, found)
    return print_memory(cluster, memory) if cluster else None


def print_plan(resolved: "Resolved", found: "Plan") -> None:
    """Print the settings that are no defaults, batches, stages, cost, and claims left untested."""
    from core.verdicts.judge import cannot_test
    from eval.stats.seeds import LOOKS

    values = sorted(resolved.values.items())
    print_columns(
        ("setting", "value", "from"), [(n, as_text(v.value), v.source) for n, v in values]
    )
    print_text(f"\n{found.batches}\n")
    print_columns(
        ("stage", "key", "state", "of"),
        [(s.name, s.key, state, s.subject) for s, state in found.stages],
    )
    if found.trials:
        rows = [(f"{rate:.3g}", stage.key, state) for rate, stage, state in found.trials]
        print_text(f"\nwith --claims, {len(rows)} trainings more choose the learning rate")
        print_columns(("on trial", "key", "state"), rows)
    print_text()
    print_columns(("cost", ""), [(k, v) for k, v in found.cost.items() if v is not None])
    print_text()
    asked = [(k, v) for k, v in found.scored_by.items() if v is not None]
    print_columns(("scored by", ""), asked)
    if resolved.paper.not_run:
        print_text(f"\nnot run here: {resolved.paper.not_run}")
    if untestable := cannot_test(resolved.paper, resolved.run):
        print_text()
        print_columns(("claim without a verdict at these settings", "why"), untestable.items())
    if found.visible:
        looks = [f"{look.seeds} seeds" for look in LOOKS]
        rows = [(slug, *(f"{x:.1f}" for x in seen)) for slug, seen in found.visible.items()]
        print_text()
        print_columns(("effect in points that is decided in 4 of 5 cases", *looks), rows)


def print_memory(cluster: "Cluster", memory: "list[Memory]") -> None:
    """Print what each launch needs on one GPU, in GB, and whether it is there."""
    from core.families.family import PROMPT_TOKENS
    from core.settings.memory import GB, GPUS, USABLE

    parts = (
        "weights", "gradients", "optimiser", "reference", "activations", "autocast", "gathered",
        "kv_cache", "training", "sampling",
    )  # fmt: skip
    rows = [
        (
            one.launch,
            *(f"{getattr(one, part) / GB:.1f}" for part in parts),
            "yes" if one.fits(cluster) else "no",
        )
        for one in memory
    ]
    print_text()
    print_columns((f"GB on each of {cluster.count}", *parts, "fits"), rows)
    print_text(
        f"fits: the larger of training and sampling is at most {USABLE:.0%} of the {cluster.gpu}'s "
        f"{GPUS[cluster.gpu]} GB; prompts of {PROMPT_TOKENS} tokens, all completions at full length"
    )
