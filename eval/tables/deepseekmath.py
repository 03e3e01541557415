"""The DeepSeekMath benchmark table from plain records: as printed, with our rows, pocket-sized.

Both functions take a list of dicts (records as read from JSON) and ignore kinds they do not use.

kind "reported" - one per paper; fields read: `paper` (slug), `title`, `cells`. A cell has
    system     name without its size: "DeepSeekMath-RL"; order of first appearance is the row order
    size       "7B", or None when unknown (closed-source systems)
    block      "cot" | "tool"
    source     "closed" | "open"
    benchmark  "gsm8k" | "math" | "mgsm_zh" | "cmath"
    metric     "top1" | "maj@32"; anything but top1 is marked and never ranked
    value      percent, a number
    passage    where it is printed: "table 5"
  A number that is not in the table (of the text only) is left out of `cells` or has block "text".

kind "run" - one per (paper, arm, scale, seed); fields read: `paper`, `arm`, `seed`,
    `scale` ("cpu" | "gpu" | "paper"), `start_model` (name of the starting checkpoint), `created`,
    `size` (optional, "0.9M"), `start_scores` and `scores`: lists of Score dicts with benchmark,
    mode ("cot" | "tir"), metric ("top1", ...), value, low, high (percent), n (problems), limited.
    Of several runs with the same arm and seed the last created counts: hand in runs of one recipe,
    not those with overrides.
  The figures read `curves` ({metric: [[step, value], ...]}) and
    `sampling` ({benchmark: {"before": C, "after": C}}) with C = {"k": [...], "maj": [...],
    "maj_low": [...], "maj_high": [...], "pass": [...], "pass_low": [...], "pass_high": [...]},
    all in percent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark
from eval.tables.seeds import LIMITED, mean_cell
from eval.tables.table import Block, Cell, Row, Section, Table, with_best_bold

Record = Mapping[str, Any]

SLUG = "deepseekmath-grpo"
HEADS = ("Model", "Size")
BENCHMARKS = {"gsm8k": "GSM8K", "math": "MATH", "mgsm_zh": "MGSM-zh", "cmath": "CMATH"}
SUITES = {
    "pocket-gsm8k": "pocket GSM8K",
    "pocket-math": "pocket MATH",
    "pocket-mgsm-zh": "pocket MGSM-zh",
    "pocket-cmath": "pocket CMATH",
}
BLOCKS = {"cot": "Chain-of-thought reasoning", "tool": "Tool-integrated reasoning"}
MODES = {"cot": "cot", "tool": "tir"}
SOURCES = {"closed": "Closed-source models", "open": "Open-source models"}
RANKED = ("open",)
REPORTED = ("system", "size", "block", "source", "benchmark", "metric", "value", "passage")
SEEDS_NOTE = (
    "Ours: mean over seeds with a 95 % interval for the drawing of the problems and of the seeds; "
    "n: problems, times seeds if there are several; not ranked."
)
LIMITED_NOTE = "scored on a part of the test set, n says how many problems; not ranked."


def benchmark_table(records: Iterable[Record], paper: str = SLUG) -> Table:
    """Lay out every printed cell as the paper does, our paper-scale runs below if there are any.

    Raises:
        BadValue: no reported numbers, an unknown block, source or benchmark, or two numbers for
            one place.

    """
    records = list(records)
    cells = [
        cell
        for record in records
        if record.get("kind") == "reported" and record["paper"] == paper
        for cell in record["cells"]
        if cell.get("block") != "text"
    ]
    if not cells:
        raise BadValue(f"no reported numbers of {paper}: expected a record of kind 'reported'")
    for cell in cells:
        check(cell)
    ours = newest(records, paper, "paper")
    blocks = tuple(
        with_best_bold(Block(title, (*printed_sections(cells, block), *our_sections(ours, block))))
        for block, title in BLOCKS.items()
    )
    scale = "paper scale, reported and ours" if ours else "paper scale, as reported"
    return Table(
        name="deepseekmath",
        caption=f"DeepSeekMath: accuracy in % ({scale})",
        scale="paper",
        heads=HEADS,
        columns=tuple(BENCHMARKS.values()),
        blocks=blocks,
        marks={
            **{mark: majority(mark) for mark in sorted({c["metric"] for c in cells} - {"top1"})},
            **limited_mark(ours),
        },
        notes=(
            "Bold: the best open-source cell of a benchmark, within its block.",
            *((SEEDS_NOTE,) if ours else ()),
        ),
    )


def pocket_table(
    records: Iterable[Record], paper: str = SLUG, arms: Sequence[str] | None = None
) -> Table:
    """The table of a paper's runs at cpu scale."""
    return runs_table(records, "cpu", paper, arms)


def runs_table(
    records: Iterable[Record], scale: str, paper: str = SLUG, arms: Sequence[str] | None = None
) -> Table:
    """Lay out the starting model and what each arm made of it, on what was scored; CoT, greedy.

    `arms` chooses and orders the arms; without it every arm that has a run is shown.

    Raises:
        BadValue: no run at this scale, or a run without a score of a suite that another has.

    """
    runs = newest(records, paper, scale)
    chosen = list(dict.fromkeys(run["arm"] for run in runs)) if arms is None else list(arms)
    by_arm = {arm: [run for run in runs if run["arm"] == arm] for arm in chosen}
    empty = [arm for arm, found in by_arm.items() if not found]
    if empty or not by_arm:
        wanted = f"no run of {paper} at {scale} scale"
        raise BadValue(f"{wanted} for {empty}" if empty else wanted)
    scored = dict.fromkeys(row["benchmark"] for run in runs for row in run["scores"])
    suites = {name: SUITES.get(name) or find_benchmark(name).title for name in scored}
    pocket = suites.keys() <= SUITES.keys()
    return Table(
        name="deepseekmath-pocket" if (paper, scale) == (SLUG, "cpu") else f"{paper}-{scale}",
        caption=f"{'The pocket world' if pocket else paper}: accuracy in % before and after RL "
        f"({scale} scale, greedy, top1)",
        scale=scale,
        heads=HEADS,
        columns=tuple(suites.values()),
        blocks=(Block(BLOCKS["cot"], sections(by_arm, suites, "cot")),),
        marks=limited_mark([run for found in by_arm.values() for run in found]),
        notes=(SEEDS_NOTE,),
    )


def check(cell: Record) -> None:
    """Refuse a reported cell without a field, or that no place of the table belongs to."""
    missing = [name for name in REPORTED if name not in cell]
    if missing:
        raise BadValue(f"reported cell {dict(cell)}: no {', '.join(missing)}")
    for name, known in (("block", BLOCKS), ("source", SOURCES), ("benchmark", BENCHMARKS)):
        if cell[name] not in known:
            raise BadValue(
                f"{cell['system']}, {cell['passage']}: {name} {cell[name]!r}, "
                f"expected one of {', '.join(known)}"
            )


def majority(metric: str) -> str:
    """Say what the mark of a cell means."""
    samples = metric.partition("@")[2]
    return f"majority vote over {samples} samples, not one answer; not ranked."


def printed_sections(cells: Sequence[Record], block: str) -> Iterable[Section]:
    """Build the block's sections by source, in the order of the paper."""
    for source, title in SOURCES.items():
        found: dict[tuple[str, str], dict[str, Cell]] = {}
        for cell in cells:
            if (cell["block"], cell["source"]) == (block, source):
                row = found.setdefault((cell["system"], cell["size"] or "-"), {})
                if cell["benchmark"] in row:
                    raise BadValue(
                        f"{cell['system']}: two numbers for {cell['benchmark']}, {block}"
                    )
                row[cell["benchmark"]] = printed_cell(cell)
        rows = tuple(
            Row(labels, tuple(row.get(name) for name in BENCHMARKS))
            for labels, row in found.items()
        )
        if rows:
            yield Section(title, rows, ranked=source in RANKED)


def printed_cell(cell: Record) -> Cell:
    """Build a reported cell with its passage, marked unless it is top1."""
    mark = None if cell["metric"] == "top1" else cell["metric"]
    return Cell(cell["value"], reported=True, mark=mark, source=cell["passage"])


def our_sections(runs: Sequence[Record], block: str) -> Sequence[Section]:
    """Build our runs' sections in one block of the paper's table, if they have such scores."""
    by_arm: dict[str, list[Record]] = {}
    for run in runs:
        by_arm.setdefault(run["arm"], []).append(run)
    return sections(by_arm, BENCHMARKS, MODES[block]) if by_arm else ()


def sections(
    by_arm: Mapping[str, Sequence[Record]], benchmarks: Mapping[str, str], mode: str
) -> tuple[Section, ...]:
    """Build the rows of the starting model and of every arm, for the benchmarks in one mode."""
    runs = [run for found in by_arm.values() for run in found]
    start = {run.get("start_model") or "start" for run in runs}
    size = next((run["size"] for run in runs if run.get("size")), "-")
    starts = list({run["seed"]: run for run in runs}.values())
    if all(run["start_scores"] == starts[0]["start_scores"] for run in starts):
        starts = starts[:1]  # one checkpoint, scored once: not a mean over seeds
    before = Row(
        (", ".join(sorted(start)), size), row_cells(starts, "start_scores", benchmarks, mode)
    )
    after = [
        Row((f"+ {arm}", size), row_cells(found, "scores", benchmarks, mode))
        for arm, found in by_arm.items()
    ]
    named = (("Ours: before RL", (before,)), ("Ours: after RL", tuple(after)))
    return tuple(
        Section(title, rows) for title, rows in named if any(c for row in rows for c in row.cells)
    )


def row_cells(
    runs: Sequence[Record], field: str, benchmarks: Mapping[str, str], mode: str
) -> tuple[Cell | None, ...]:
    """Build one cell per benchmark, over the seeds; None where no run has a score."""
    cells = []
    for name in benchmarks:
        scores = [
            score
            for run in runs
            for score in run[field]
            if (score["benchmark"], score["mode"], score["metric"]) == (name, mode, "top1")
        ]
        if scores and len(scores) != len(runs):
            raise BadValue(f"{name}, {mode}: {len(scores)} scores in {field} of {len(runs)} runs")
        cells.append(mean_cell(scores) if scores else None)
    return tuple(cells)


def newest(records: Iterable[Record], paper: str, scale: str) -> list[Record]:
    """Choose the runs of a paper at one scale, the last created of every arm and seed."""
    runs = [
        record
        for record in records
        if record.get("kind") == "run" and (record["paper"], record["scale"]) == (paper, scale)
    ]
    runs.sort(key=lambda run: run.get("created") or "")
    latest = {(run["arm"], run["seed"]): run for run in runs}
    return sorted(latest.values(), key=lambda run: run["seed"])


def limited_mark(runs: Sequence[Record]) -> dict[str, str]:
    """The mark and its meaning if any score covers only a part of its test set."""
    scores = [score for run in runs for score in (*run["start_scores"], *run["scores"])]
    return {LIMITED: LIMITED_NOTE} if any(score.get("limited") for score in scores) else {}
