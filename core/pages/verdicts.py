"""Verdicts in the words of a report and of the terminal."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from core.claims.margins import IN_WORDS
from core.records.schema import ClaimsRecord, Record, RunRecord
from core.records.verdict_row import VerdictRow
from core.settings.canonical import as_text
from core.verdicts.run_worlds import world_of
from eval.stats.seeds import LEVEL, Look
from eval.tables.report import ClaimResult
from eval.tables.verdict_words import VERDICTS

BLOCKED = ("no room", "inert", "unhealthy")  # whatever the interval is
NAME = re.compile(r"[\w.-]+")
ALWAYS = ("held", "refuted", "undecided")  # are counted where there are none, too


def summary(verdicts: Sequence[VerdictRow]) -> str:
    """Count the verdicts of a paper in a sentence; empty without claims."""
    counts = Counter(verdict_word(verdict) for verdict in verdicts)
    parts = [f"{counts[word]} {word}" for word in VERDICTS if counts[word] or word in ALWAYS]
    if not verdicts:
        return ""
    tested = sum(verdict["p"] is not None for verdict in verdicts)
    chance = f" By chance alone at most {LEVEL * tested:.2g} of the {tested} tests would decide."
    return f"Of {len(verdicts)} claims: {', '.join(parts)}.{chance if tested else ''}"


def verdict_word(verdict: VerdictRow) -> str:
    """Return the verdict, or "untested" if it is undecided and nothing was measured."""
    silent = verdict["effect"] is None and verdict["verdict"] == "undecided"
    return "untested" if silent else verdict["verdict"]


def one_rate(runs: Sequence[RunRecord]) -> str:
    """Say, for each regime of these runs, which learning rate all its arms share; else empty."""
    rates: dict[str, object] = {}
    for config in (run["config"] for run in runs):
        regime, rate = config.get("regime"), config.get("learning_rate")
        if regime and rate and rate["source"] == f"regime {regime['value']}":
            rates[str(regime["value"])] = rate["value"]
    return "".join(
        f"In the regime {regime} all arms have one learning rate, {rate}, fixed on its baseline "
        "before any was compared, unless an arm says its own. "
        for regime, rate in sorted(rates.items())
    )


def rules(claims: ClaimsRecord, runs: Sequence[RunRecord] = ()) -> str:
    """Say how the claims of a record were judged over these runs, in a few sentences."""
    looks = claims.get("looks", [])
    occasion = "once, by the 95 % interval over the seeds"
    if looks:
        occasion = (
            "at the first of these numbers of seeds that decides, each with its level: "
            f"{levels_of([Look(int(seeds), level) for seeds, level in looks])}{other_looks(runs)}"
        )
    fair = (
        "Each arm has the best of several learning rates, chosen on held-out problems with a seed "
        "that is not judged (see Learning rates). "
    )
    return (
        f"{fair if claims.get('tunings') else ''}{one_rate(runs)}"
        f"A claim is judged {occasion}; p is below {LEVEL:g} "
        "where that interval decides. Holm's p is for all tests of this paper together, whichever "
        "arms they share. A tie is a difference shown to be within a claim's margin, or without "
        f"one within {IN_WORDS} of the base arm's value. "
        "Could see: the smallest true effect that four of five such runs would decide."
    )


def levels_of(looks: Iterable[Look]) -> str:
    """List looks as `3 (1.5 %), 5 (1.5 %)`."""
    return ", ".join(f"{look.seeds:g} ({100 * look.level:g} %)" for look in looks)


def other_looks(runs: Iterable[RunRecord]) -> str:
    """Say at which numbers of seeds the worlds of these runs look that have looks of their own."""
    run_worlds = [world_of(cast(Record, run)) for run in runs]
    worlds = {world.name: world for world in run_worlds if world.is_bare}
    names_by_looks: dict[str, list[str]] = {}
    for name in sorted(worlds):
        names_by_looks.setdefault(levels_of(worlds[name].looks), []).append(name)
    return "".join(
        f", and in the world {' or '.join(names)} {levels}"
        for levels, names in names_by_looks.items()
    )


def claim_result(
    verdict: VerdictRow,
    own_rates: VerdictRow | None = None,
    elsewhere: Sequence[ClaimsRecord] = (),
    suites: Mapping[str, str] | None = None,
) -> ClaimResult:
    """Return a stored verdict as the page shows it.

    Without an interval the effect is part of the detail.

    Args:
        verdict: on arms at their best learning rates.
        own_rates: the verdict on the same claim with arms at their own learning rates.
        elsewhere: records of verdicts at other settings.
        suites: the measured suite by benchmark, whose name the page shows.
    """
    has_numbers = None not in (verdict["low"], verdict["high"], verdict["p"])
    effect, detail = verdict["effect"], verdict["reason"]
    if not has_numbers and effect is not None:
        detail = f"difference {effect:+.4g}; {detail}"
    if own_rates is not None and own_rates["runs"]:
        detail += f"; with each arm at its own learning rate: {outcome(own_rates)}"
    for settings, verdict_elsewhere in verdicts_elsewhere(elsewhere, verdict["id"]):
        detail += f"; with {settings}: {outcome(verdict_elsewhere)}"
    names = ("effect", "low", "high", "p", "holm", "seen")
    numbers: dict[str, Any] = {name: verdict.get(name) if has_numbers else None for name in names}
    return ClaimResult(
        slug=verdict["id"],
        statement=verdict["statement"],
        compare=as_measured(comparison_text(verdict), suites or {}),
        verdict=verdict_word(verdict),
        **numbers,
        seeds=len(verdict["seeds"]),
        unit=verdict.get("unit", ""),
        relation=verdict["relation"],
        equal=verdict.get("equal", 0.0),
        detail=as_measured(detail, suites or {}),
    )


def measured_suites(runs: Iterable[RunRecord]) -> dict[str, str]:
    """Return the suite that stands for each benchmark of a paper in its runs."""
    rows = (row for run in runs for row in (*run["scores"], *run["start_scores"]))
    return {row["mirrors"]: row["benchmark"] for row in rows}


def as_measured(text: str, suites: Mapping[str, str]) -> str:
    """Replace the benchmarks between the brackets of a text by the suites that were measured."""

    def rename(inside: re.Match[str]) -> str:
        return NAME.sub(lambda name: suites.get(name.group(), name.group()), inside.group())

    return re.sub(r"\([^()]*\)", rename, text)


def verdicts_elsewhere(
    elsewhere: Iterable[ClaimsRecord], claim: str
) -> Iterator[tuple[str, VerdictRow]]:
    """Yield the settings and the verdict of each record that tested a claim at other settings."""
    for record in elsewhere:
        settings = " ".join(f"{n}={as_text(v)}" for n, v in sorted(record["overrides"].items()))
        rows = [row for row in record["verdicts"] if row["id"] == claim and row["runs"]]
        yield from ((settings, row) for row in rows)


def comparison_text(verdict: VerdictRow) -> str:
    """Format both sides of a verdict and the relation; empty for an untestable claim."""
    left, right = verdict["left"], verdict["right"]
    if left is None or right is None:
        return ""
    left_text, right_text = (
        f"{s['measure']} of {s['arm']}" if s["arm"] else s["measure"] for s in (left, right)
    )
    return f"{left_text} {verdict['relation']} {right_text}"


def verdict_line(verdict: VerdictRow) -> str:
    """Format one claim for the terminal: verdict, claim, effect, interval, and the missed gate."""
    has_numbers = None not in (verdict["effect"], verdict["low"], verdict["p"])
    why = f"; {verdict['reason']}" if has_numbers and verdict["verdict"] in BLOCKED else ""
    return f"{verdict['verdict']:<10} {verdict['id']:<26} {numbers(verdict)}{why}"


def outcome(verdict: VerdictRow) -> str:
    """Format a verdict in a word, and its numbers."""
    return f"{verdict_word(verdict)}, {numbers(verdict)}"


def numbers(verdict: VerdictRow) -> str:
    """Format the effect of a verdict with interval, p and seeds, or the reason if it has none."""
    if verdict["effect"] is None or not verdict["seeds"]:
        return verdict["reason"]
    if None in (verdict["low"], verdict["p"]):
        return f"{verdict['effect']:+.2f}; {verdict['reason']}"
    low, high, p = verdict["low"], verdict["high"], verdict["p"]
    seeds = len(verdict["seeds"])
    return f"{verdict['effect']:+.2f} [{low:+.2f}, {high:+.2f}], p {p:.3f}, {seeds} seeds"
