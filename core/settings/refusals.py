"""Checks of papers and runs before anything starts: unknown names, equal arms, missing columns."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from core.claims.needs import PREPARED
from core.data.data_set import DataSet
from core.data.prompts import PROMPT
from core.data.sources import File, read_rows
from core.paper import Paper
from core.settings.bounds import check_held_out
from core.settings.effective import effective
from core.settings.layers import COMMAND_LINE
from core.settings.own_trainer import load_trainer
from core.settings.resolve import resolve
from core.settings.resolved import HELD_OUT_ROWS, Resolved
from eval.errors import BadValue, ReproError
from eval.json_lines import JsonFields
from eval.nano.running_sums import RunningSums
from eval.sets.benchmarks import find_benchmark


def refuse_paper(paper: Paper) -> None:
    """Raise if a paper declares that it is not run here.

    Raises:
        BadValue: the paper is not run; the message has its reason.
    """
    if paper.not_run:
        raise BadValue(f"{paper.slug} is not run here: {paper.not_run}")


def refuse(runs: Sequence[Resolved]) -> None:
    """Check the settings of runs of one paper at one scale, before anything starts.

    Raises:
        UnknownName: there is no such data set or suite.
        BadValue: the data lacks a column, a benchmark has no suite of its own, two arms are one
            training, or an arm makes rows.
    """
    for resolved in runs:
        check_run(resolved)
    paper, scale = runs[0].paper, runs[0].scale
    problem = next(same_trainings(runs), "") or equal_arms(paper, scale)
    if problem:
        raise BadValue(f"{paper.slug} at {scale}: {problem}")


def check_run(resolved: Resolved) -> None:
    """Check the settings of one run.

    Raises:
        UnknownName, BadValue: see `check_arm` and `check_names`, or the trainer refuses a setting.
        BadValue, MissingFile: the class of `trainer` cannot be loaded, see `load_trainer`.
    """
    check_arm(resolved)
    check_names(resolved)
    check_average(resolved)
    check_solutions(resolved)
    if resolved.run.trainer is not None:
        load_trainer(resolved.run.trainer, resolved.family.trainer_class())


def equal_arms(paper: Paper, scale: str) -> str:
    """Return which two arms of a paper come to one training without being declared to, or ""."""
    return next(same_trainings(arms(paper, scale)), "")


def arms(paper: Paper, scale: str) -> list[Resolved]:
    """Return the arms of a paper at a scale, without those whose settings cannot be built."""
    built: list[Resolved] = []
    for arm in paper.arms or (paper.main_arm,):
        if not paper.exists_at(arm, scale):
            continue
        try:
            resolved = resolve(paper, arm=arm, scale=scale)
            resolved.preview()
        except ReproError:
            continue  # it stops its own run, and `repro check` names it
        built.append(resolved)
    return built


def same_trainings(runs: Sequence[Resolved]) -> Iterator[str]:
    """Yield one line for each two arms that are one training but are not declared to be one.

    Arms that the paper declares to be one training and that differ are reported too.
    """
    settings = {resolved.arm: effective(resolved) for resolved in runs if resolved.family.trains}
    names = {run.arm: run.paper.same_as(run.arm, run.scale) or run.arm for run in runs}
    for arm, arm_after in combinations(settings, 2):
        differ = different(settings[arm], settings[arm_after])
        pair = f"arms {arm} and {arm_after}"
        is_declared = names[arm] == names[arm_after]
        if is_declared and differ:
            yield f"{pair} are said to be one training, but differ in {differ[0]}"
        elif not is_declared and not differ:
            yield (
                f"{pair} come to one training: a claim would compare a run with itself; "
                'let an arm change more here, by "at", or say so by "same_as"'
            )


def different(left: JsonFields, right: JsonFields) -> list[str]:
    """Return the names of the settings in which two effective settings differ."""
    pairs = (
        (left, right),
        (left["config"], right["config"]),
        (left["settings"], right["settings"]),
    )
    names = [n for a, b in pairs for n in {**a, **b} if a.get(n, ...) != b.get(n, ...)]
    return [name for name in names if name not in ("config", "settings")]


def check_arm(resolved: Resolved) -> None:
    """Check that the family of an arm trains or scores a model, as rows alone cannot be scored.

    Raises:
        BadValue: the arm makes rows.
    """
    if resolved.family.gives:
        raise BadValue(
            f"{resolved.arm}: the family {resolved.family.name} makes rows, which are not scored: "
            f"name it in `preparations`, and its rows as data={PREPARED}{resolved.arm}"
        )


def check_average(resolved: Resolved) -> None:
    """Check that a training has an update of averaged weights, if its steps can be known.

    Raises:
        BadValue: it has none, or the trainer refuses a setting.
    """
    config, averaging = resolved.preview(), resolved.run.averaging
    if averaging is None:
        return
    steps = resolved.family.cost(config, resolved.rows).updates
    if steps is not None:
        averaging.check_steps(steps)


def check_solutions(resolved: Resolved) -> None:
    """Check that solutions of held-out rows can be judged, if claims read quantities of them.

    Raises:
        BadValue: a data set has other problems than those whose steps are judged.
    """
    is_read = resolved.claimed_quantities(resolved.family.solution_quantities)
    for data_set in resolved.sets if is_read and resolved.run.heldout_problems else ():
        is_made = data_set.name.startswith(PREPARED)
        if not is_made and set(data_set.source.benchmarks) != {RunningSums.name}:
            raise BadValue(
                f"data={data_set.name}: held-out problems are solved, and the steps of solutions "
                f"of {RunningSums.name} alone can be judged: hold none out, by {HELD_OUT_ROWS}=0"
            )


def check_names(resolved: Resolved) -> None:
    """Check the data and the suites of a run.

    Each benchmark needs a suite of its own, and at cpu a small one. Of preparations only the data
    is checked, as they are not scored.

    Raises:
        UnknownName: there is no data set, suite or mode of answering of that name.
        BadValue: the data lacks a column, or two benchmarks share a suite, or a benchmark has none.
    """
    settings = resolved.run
    check_columns(resolved)
    for name, name_after in combinations(settings.benchmarks, 2):
        suite = settings.suites[name]
        if suite == settings.suites[name_after]:
            raise BadValue(
                f"benchmarks {name} and {name_after} are both scored on {suite}: give each a "
                "suite of its own in `twins`, or leave one out"
            )
    for suite in settings.watched_suites:
        find_benchmark(suite).check_mode(settings.heldout_mode)
    for suite, mode in product(settings.suites.values(), settings.eval_modes):
        find_benchmark(suite).check_mode(mode)
    twins = resolved.values.get("twins")
    is_chosen = twins is not None and twins.source == COMMAND_LINE
    for name, suite in settings.suites.items():
        if find_benchmark(suite).hub and resolved.scale == "cpu" and not is_chosen:
            raise BadValue(
                f"benchmark {name} has no small twin at cpu: name one in `twins`, or leave it out"
            )


def check_columns(resolved: Resolved) -> None:
    """Check that the data of a run and of its preparations has the columns that are read.

    Raises:
        UnknownName, BadValue: see `check_names`; or more rows are to be held out than there are.
    """
    for prepared in resolved.prepared.values():
        check_columns(prepared)
    family = resolved.family
    for data_set in resolved.sets if family.columns else ():
        check_data_set(resolved, data_set)
    rows = resolved.rows if family.trains and resolved.gives_held_out else None
    if rows is not None and resolved.splits:
        check_held_out(resolved.run.heldout_problems, rows, of_their_own=False)


def check_data_set(resolved: Resolved, data_set: DataSet) -> None:
    """Check the columns of a data set, and try the prompts' template on the first row of a file.

    Raises:
        BadValue: a column is missing, or the template does not fit the row.
    """
    missing = missing_columns(resolved, data_set)
    if missing:
        raise BadValue(
            f"data={data_set.name} has no column {missing[0]}, which {resolved.family.name} "
            f"trains on; it has {', '.join(data_set.columns or ()) or 'none'}"
        )
    if isinstance(data_set.source, File) and applies_prompts(resolved, data_set):
        resolved.run.prompts.with_prompt(data_set.name, 0, read_rows(data_set.source.path, None)[0])


def missing_columns(resolved: Resolved, data_set: DataSet) -> list[str]:
    """Return the columns that a run reads and a data set lacks; empty if they are unknown."""
    applies = applies_prompts(resolved, data_set)
    needed = [name for name in resolved.reads if name != PROMPT or not applies]
    needed += resolved.run.prompts.columns if applies else ()
    columns = needed if data_set.columns is None else data_set.columns
    return [name for name in needed if name not in columns]


def applies_prompts(resolved: Resolved, data_set: DataSet) -> bool:
    """Return whether the rows of a data set get prompts from the settings of a run."""
    columns = {*resolved.reads, *(data_set.columns or (PROMPT,))}
    prompts = resolved.run.prompts
    return not data_set.name.startswith(PREPARED) and prompts.act_on(
        own=data_set.own, columns=columns
    )
