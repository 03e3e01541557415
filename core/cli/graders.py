"""Prints the disagreements of two graders, and the stress test of a verifier."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.cli.output import print_columns, print_json, print_text
from eval.json_lines import JsonObject

if TYPE_CHECKING:
    from eval.samples.side_by_side import Judged

SHORT = 40  # characters of an answer in a column


def show_graders(
    rows: Sequence[JsonObject], verdicts: "Sequence[Judged]", *, explain: bool, as_json: bool
) -> None:
    """Print the paper's scores and counts, and with `explain` where the graders differ."""
    from eval.samples.side_by_side import differences

    disagreements = differences(verdicts) if explain else []
    if as_json:
        return print_json(
            [row | {"differences": disagreements} if explain else row for row in rows]
        )
    for row in rows:
        low, high = row["paper"]["interval"]
        print_text(
            f"{row['metric']} by the paper's grader: "
            f"{row['paper']['score']:.1f} ({low:.1f} to {high:.1f})"
        )
        if row.get("official"):
            print_text(official_line(row["metric"], row["official"]))
    counted = ", ".join(
        f"{k.replace('_', ' ')} {'?' if n is None else n}" for k, n in rows[0]["counts"].items()
    )
    print_text(f"{counted}; the graders differ on {rows[0]['differ']}")
    if disagreements:
        head = ("id", "sample", "answer", "strict", "read", "why", "paper", "read", "why")
        print_columns(head, [difference(row_data) for row_data in disagreements])
    return None


def official_line(metric: str, official: JsonObject) -> str:
    """Return a line with the score by the benchmark's own rule, and the replies it left out."""
    left_out = f", {official['errors']} error replies left out" if official["errors"] else ""
    if official["score"] is None:
        return f"{metric} by the benchmark's official rule: none{left_out}"
    low, high = official["interval"]
    value = f"{official['score']:.1f} ({low:.1f} to {high:.1f})"
    return f"{metric} by the benchmark's official rule: {value}{left_out}"


def difference(disagreement: JsonObject) -> tuple[object, ...]:
    """Return the cells of one disagreement."""
    sides = [
        cell
        for side in (disagreement["strict"], disagreement["paper"])
        for cell in (
            WORDS[side["correct"]],
            short(side["extracted"]),
            f"{side['rule']}: {side['reason']}",
        )
    ]
    return (disagreement["id"], disagreement["sample"], short(disagreement["answer"]), *sides)


WORDS = {True: "right", False: "wrong", None: "no verdict"}


def short(text: str | None) -> str:
    """Return an answer on one line, at most `SHORT` characters long."""
    line = repr(text)[1:-1] if text is not None else "-"
    return line if len(line) <= SHORT else line[: SHORT - 3] + "..."


def show_trials(benchmark: str, *, as_json: bool) -> int:
    """Print the stress test of a benchmark's verifier; return 1 if it fails, else 0."""
    from dataclasses import asdict

    from core.rewards.verifiers import try_verifier

    trials = try_verifier(benchmark)
    if as_json:
        print_json([asdict(trial) | {"passed": trial.passed} for trial in trials])
    else:
        head = ("answer", "must be", "accepted", "of", "no verdict", "verifier")
        labels = {True: "right", False: "wrong", None: "a guess"}
        print_columns(
            head,
            [
                (
                    trial.name,
                    labels[trial.expected],
                    trial.accepted,
                    trial.tried,
                    trial.undecided,
                    "holds" if trial.passed else "FAILS",
                )
                for trial in trials
            ],
        )
    return 0 if all(trial.passed for trial in trials) else 1
