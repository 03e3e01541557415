"""Damages to whole records by one who knows the house: all but two are seen without training.

Whoever damages a record names it anew, so that its name is right, and follows every reference to it
(verdicts, successors, the list of accepted runs); gains are split again. `judged` ones judge the
claims again as well.
Pages are no witness here: they are rendered again from whatever there is.
"""

import json
import shutil
from dataclasses import asdict, replace
from typing import Any  # records are JSON of several types

import pytest
from run_records import SUITES, run_record

from core.pages.tables import record_reported
from core.paper.registry import entries, find_entry
from core.records.accepted import accept, list_problems
from core.records.answers import content_of, name_of
from core.records.form_splits import form_splits
from core.records.passed import Passed
from core.records.record import read_records, standard, write_record
from core.records.record_text import parse_record
from core.records.run_samples import sample_files_of, write_run_samples
from core.records.schema import runs_of
from core.run.check import (
    reported_problems,
    sample_problems,
    verdict_problems,
    whole_records,
)
from core.run.publish import move
from core.settings.canonical import canonical
from core.verdicts.history import kept_problems, unknown_files
from core.verdicts.judge import judge
from core.verdicts.regrade import Regrader
from core.verdicts.verdict_records import verdicts_record
from eval.samples.evaluation import score
from eval.samples.parquet import read_columns
from eval.samples.store import digest_of, regrade
from eval.sets.benchmarks import find_benchmark

SLUG = "deepseekmath-grpo"
PAPER = find_entry(SLUG).load()
MAIN = PAPER.main_arm
OTHER, THIRD = [arm for arm in PAPER.arms if arm != MAIN][:2]
EVERY = SUITES | {"mgsm_zh": "pocket-mgsm-zh", "cmath": "pocket-cmath"}


class Forger:
    """The records of a folder in memory: changed, then written with names and references right."""

    def __init__(self, root, arm=MAIN):
        self.arm = arm
        self.folder = root / "results" / SLUG
        self.records = {
            p.stem: parse_record(p.read_text()) for p in self.folder.glob("?????*.json")
        }
        del self.records["accepted"]
        shown = standard({**r, "digest": d} for d, r in self.records.items())
        self.shown = {r["digest"] for r in shown}
        self.claims = self.of_kind("claims")
        self.gone: list[str] = []
        self.samples = {
            named: read_columns(path).samples(name)
            for digest, record in self.records.items()
            for run in runs_of([{**record, "digest": digest}])
            for path, sets in sample_files_of(run)
            for name, named in sets.items()
        }

    def add(self, samples):
        """Add samples that are not stored; return their digest."""
        digest = digest_of(samples)
        self.samples[digest] = samples
        return digest

    def run(self, arm=None, seed=0):
        """A shown run; of the arm that is damaged if no other is named."""
        return next(
            r
            for d, r in self.records.items()
            if d in self.shown and (r.get("arm"), r.get("seed")) == (arm or self.arm, seed)
        )

    def of_kind(self, kind):
        """The shown record of a kind."""
        return next(r for d, r in self.records.items() if d in self.shown and r["kind"] == kind)

    def verdict(self, name):
        """A shown verdict."""
        return next(row for row in self.of_kind("claims")["verdicts"] if row["id"] == name)

    def remove(self, record):
        """Take a record away, and leave what refers to it."""
        self.gone += [digest for digest, r in self.records.items() if r is record]

    def write(self, *, again):
        """Name all anew, each after what it refers to; `again` judges the runs as they are now."""
        renamed: dict[str, str] = {}
        made = sorted(self.records, key=lambda d: (self.records[d] is self.claims, self.when(d)))
        for digest in made:
            text = json.dumps(self.records[digest])
            for old, new in renamed.items():
                text = text.replace(old, new)
            record: Any = canonical(json.loads(text))
            if record["kind"] == "claims" and digest in self.shown and again:
                record |= self.judged(
                    [d for d in self.claims["runs"] if d not in self.gone], renamed
                )
            if record["kind"] == "run":
                forms = form_splits(
                    record["start_scores"], record["scores"], self.samples.__getitem__
                )
                record["forms"] = canonical(forms)
            if "content" in record:
                record["content"] = content_of(record)
            (self.folder / f"{digest}.json").unlink()
            (self.folder / f"{digest}.parquet").unlink(missing_ok=True)
            if digest not in self.gone:
                renamed[digest] = name_of(record)
                (self.folder / f"{renamed[digest]}.json").write_text(json.dumps(record))
                for run in runs_of([{**record, "digest": renamed[digest]}]):
                    write_run_samples(run, self.samples.__getitem__, self.folder.parent)
        self.follow(renamed)

    def when(self, digest):
        """When a record was made."""
        return self.records[digest]["created"]

    def judged(self, named, renamed):
        """The verdicts that follow from these runs as they are now."""
        runs = [self.records[digest] | {"digest": renamed[digest]} for digest in named]
        return {
            "verdicts": canonical(judge(PAPER, runs)),
            "runs": [run["digest"] for run in runs],
            "seeds": sorted({run["seed"] for run in runs}),
        }

    def follow(self, renamed):
        """What names records names them as they are called now; no samples are left over."""
        log = self.folder.parents[0] / "CHANGES.md"
        for path in (self.folder / "accepted.json", log):
            text = path.read_text()
            for old, new in renamed.items():
                text = text.replace(old, new)
            path.write_text(text)
        claims = renamed.get(next(d for d, r in self.records.items() if r is self.claims))
        log.write_text(f"{log.read_text()}- {claims}: {[claim.slug for claim in PAPER.claims]}")
        texts = " ".join(path.read_text() for path in self.folder.rglob("*.json"))
        for path in (self.folder.parent / "samples").iterdir():
            if path.stem not in texts:
                path.unlink()


def forge(root, change, *, again, arm=MAIN):
    """Change records as their forger would."""
    forger = Forger(root, arm)
    change(forger)
    forger.write(again=again)


def settings(forger):
    return forger.run()["config"]


def row_of(forger):
    return forger.run()["scores"][0]


def swap(forger, *fields, one=(MAIN, 0), other=(OTHER, 0)):
    left, right = forger.run(*one), forger.run(*other)
    for field in fields:
        left[field], right[field] = right[field], left[field]


def copy_seed(forger, *kept):
    """Seed 0 of an arm as seed 1."""
    source, target = forger.run(seed=0), forger.run(seed=1)
    target.update({k: v for k, v in source.items() if k not in ("seed", "created", *kept)})


def raise_curve(forger, by, begin):
    for point in forger.run()["curves"]["held_out/accuracy"][begin:]:
        point[1] += by


def other_start(forger):
    forger.run()["start_scores"] = forger.run(OTHER)["scores"]


def other_start_samples(forger):
    change = next(iter(forger.run()["sampling"].values()))
    change["before"] = change["after"]


def set_in(found, name, value):
    found[name] = value


def turned_samples(forger):
    """Each stored verdict is the contrary, under the right name."""
    row = row_of(forger)
    turned = [replace(s, correct=not s.correct) for s in forger.samples[row["digest"]]]
    row["digest"] = forger.add(turned)


def one_undecided(forger):
    """One stored verdict is taken away, under the right name."""
    row = row_of(forger)
    first, *rest = forger.samples[row["digest"]]
    row["digest"] = forger.add([replace(first, correct=None), *rest])


def said_whole(forger):
    """Outcomes are said to be samples with their texts."""
    del row_of(forger)["texts"]


def said_sealed(forger):
    """The texts of the main arm are said not to be kept."""
    row = row_of(forger)
    row["texts"] = row["digest"]


def printed(forger):
    return next(c for c in forger.of_kind("reported")["cells"] if c["value"] == 51.7)


def accepted_swapped(root):
    path = root / "results" / SLUG / "accepted.json"
    found = json.loads(path.read_text())
    one, other = list(found["runs"])[:2]
    swapped = {one: found["runs"][other], other: found["runs"][one]}
    path.write_text(json.dumps(found | {"runs": found["runs"] | swapped}))


def deleted_predecessor(root):
    folder = root / "results" / SLUG
    older = {json.loads(p.read_text()).get("supersedes") for p in folder.glob("*.json")} - {None}
    for path in [*folder.glob("*.json"), *folder.glob("earlier/*.json")]:
        if path.stem in older:
            return path.unlink()
    raise AssertionError("no record supersedes another")


def stray_files(root):
    for name in (f"{SLUG}/note.txt", "deepsekmath/note.txt", "samples/0123.parquet"):
        path = root / "results" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert len(seen()) == 3


def never_superseded(forger):
    forger.of_kind("claims")["supersedes"] = "0123456789abcdef"


def hidden_behind_another_arm(forger):
    digest = next(d for d, r in forger.records.items() if r is forger.run(seed=1))
    forger.run(OTHER, 1)["supersedes"] = digest
    forger.run(OTHER, 1)["created"] = "2100"


def swapped_answers(forger):
    """All that training and scoring gave, as if each arm had been the other one."""
    swap(forger, "train", "scores", "curves", one=(OTHER, 0), other=(THIRD, 0))


def rewritten_answers(forger):
    """Twenty wrong answers become right ones, and the score follows."""
    row = row_of(forger)
    stored = forger.samples[row["digest"]]
    problems = {problem.id: problem for problem in find_benchmark(row["benchmark"]).load()}
    wrong = [sample.id for sample in stored if not sample.correct][:20]
    spoken = {name: f"The answer is \\boxed{{{problems[name].answer}}}." for name in wrong}
    told = [replace(s, output=spoken.get(s.id, s.output)) for s in stored]
    graded = regrade(told, problems.values())
    row |= asdict(score(graded, find_benchmark(row["benchmark"]))[0])
    row["digest"] = forger.add(graded)


FIRST, SECOND = (claim.slug for claim in PAPER.claims[:2])
# What is done to the records, and whether the claims are judged again afterwards.
DAMAGES = {
    "a verdict": (lambda f: set_in(f.verdict("maj-not-pass"), "verdict", "turned"), False),
    "an effect": (lambda f: set_in(f.verdict(FIRST), "effect", 30.0), False),
    "a narrower interval": (lambda f: set_in(f.verdict(FIRST), "low", 22.8), False),
    "a smaller p": (lambda f: set_in(f.verdict(SECOND), "p", 1e-9), False),
    "the statement of a claim": (lambda f: set_in(f.verdict(FIRST), "statement", "Yes."), False),
    "the specification of a claim": (
        lambda f: set_in(f.of_kind("claims")["specified"], FIRST, "0123456789abcdef"),
        False,
    ),
    "a verdict left out": (lambda f: f.of_kind("claims")["verdicts"].pop(), False),
    "verdicts over runs that do not exist": (
        lambda f: set_in(f.of_kind("claims")["runs"], 0, "0123456789abcdef"),
        False,
    ),
    "verdicts over more seeds": (lambda f: f.of_kind("claims")["seeds"].append(3), False),
    "a deleted run": (lambda f: f.remove(f.run(seed=1)), False),
    "a deleted run, judged without it": (lambda f: f.remove(f.run(seed=1)), True),
    "a seed's record copied as another's": (copy_seed, True),
    "a seed's record copied, with other weights": (lambda f: copy_seed(f, "train"), True),
    "two arms' scores swapped": (lambda f: swap(f, "scores"), False),
    "two arms' Maj@K swapped": (lambda f: swap(f, "sampling"), True),
    "two arms' settings swapped": (lambda f: swap(f, "config"), True),
    "another start policy's scores": (other_start, True),
    "another start policy's Maj@K": (other_start_samples, True),
    "another start policy": (lambda f: set_in(f.run()["model"], "digest", "0" * 64), True),
    "a changed learning rate": (
        lambda f: set_in(settings(f)["learning_rate"], "value", 3e-4),
        True,
    ),
    "a setting left out": (lambda f: settings(f).pop("beta"), True),
    "a curve raised by 30": (lambda f: raise_curve(f, 30, begin=1), True),
    "more steps": (lambda f: set_in(f.run()["train"], "steps", 1000), True),
    "a score raised by 5": (lambda f: set_in(row_of(f), "value", row_of(f)["value"] + 5), True),
    "verdicts of samples turned": (turned_samples, True),
    "a printed 51.7 made 61.7": (lambda f: set_in(printed(f), "value", 61.7), False),
    "no record of the printed numbers": (lambda f: f.remove(f.of_kind("reported")), False),
    "a predecessor that never was": (never_superseded, False),
    "a run hidden behind another arm's": (hidden_behind_another_arm, False),
}
# Those that can be done to a run of any arm, so to one whose texts are not kept.
OF_ANY_ARM = (
    "a deleted run",
    "a deleted run, judged without it",
    "a seed's record copied as another's",
    "a seed's record copied, with other weights",
    "another start policy's scores",
    "another start policy",
    "a changed learning rate",
    "a curve raised by 30",
    "more steps",
    "a score raised by 5",
    "verdicts of samples turned",
)
OF_SEALED = {
    "a verdict taken away": (one_undecided, True),
    "outcomes that are said to be whole": (said_whole, True),
}
# What is done to the files beside.
FILES = {
    "a deleted accepted.json": lambda root: (root / "results" / SLUG / "accepted.json").unlink(),
    "accepted runs that are others": accepted_swapped,
    "a deleted predecessor": deleted_predecessor,
    "deleted samples of a starting model": lambda root: next(
        (root / "results" / "samples").iterdir()
    ).unlink(),
    "deleted samples of a run": lambda root: next(
        (root / "results" / SLUG).glob("*.parquet")
    ).unlink(),
    "files that nothing refers to": stray_files,
}
# Only training again, or asking the trained policies, could tell.
UNSEEN = {
    "two arms' trainings swapped, judged again": swapped_answers,
    "wrong answers rewritten to right ones, scored and judged again": rewritten_answers,
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Whole records: of every arm, and of the main arm twice, which changed the verdicts."""
    root = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(root))
        for place, arm in enumerate(arm for arm in PAPER.arms if arm != MAIN):
            for seed in (0, 1):
                right, made = 24 + 4 * place + seed, "2025-01-01"
                run_record(right, arm=arm, seed=seed, created=made, sealed=True)
        first = judged_with_main_arm(20, 2025)
        second = judged_with_main_arm(45, 2026)
        record_reported(PAPER)
        move(read_records(SLUG))
        accept(SLUG, standard(read_records(SLUG)))
        words = [
            {row["id"]: row["verdict"] for row in each["verdicts"]} for each in (first, second)
        ]
        changed = [f"`{name}`" for name, verdict in words[0].items() if words[1][name] != verdict]
        (root / "results" / "CHANGES.md").write_text(
            f"# Changes\n\n- {second['digest']}: {changed}\n"
        )
        assert seen() == []
    return root


def judged_with_main_arm(right, year):
    """The verdicts after runs of the main arm that solve so many problems."""
    for seed in (0, 1):
        solved, made = right + seed, f"{year}-01-02"
        run_record(solved, arm=MAIN, seed=seed, created=made, suites=EVERY, at_k=True)
    runs = [dict(run) for run in runs_of(standard(read_records(SLUG)))]
    return write_record(verdicts_record(PAPER, "cpu", runs) | {"created": f"{year}-01-03"})


@pytest.fixture
def folder(pristine, tmp_path, monkeypatch):
    """The copy, to be damaged."""
    shutil.copytree(pristine, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


def seen():
    """What is found without looking at a page."""
    entry, passed = find_entry(SLUG), Passed()
    regrader = Regrader(passed)
    records, damaged = whole_records(SLUG)
    found = [
        *damaged,
        *sample_problems(records, passed, regrader),
        *reported_problems(PAPER, records),
        *verdict_problems(entry, PAPER, records, passed),
        *kept_problems(SLUG, records, regrader),
        *list_problems(SLUG, records),
        *unknown_files(tuple(entries())),
    ]
    passed.save(whole=False)
    return found


def test_37_damages_of_which_35_can_be_seen():
    assert (len(DAMAGES) + len(FILES), len(UNSEEN)) == (35, 2)


@pytest.mark.usefixtures("folder")
def test_whole_records_have_none():
    assert seen() == []


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_record_is_seen_though_its_name_is_right(folder, name):
    change, again = DAMAGES[name]
    forge(folder, change, again=again)
    assert seen() != []


@pytest.mark.parametrize("name", [*OF_ANY_ARM, *OF_SEALED])
def test_a_damage_is_seen_though_only_outcomes_are_stored(folder, name):
    change, again = {**DAMAGES, **OF_SEALED}[name]
    forge(folder, change, again=again, arm=OTHER)
    assert seen() != []


def test_a_main_arm_without_its_texts_is_seen(folder):
    forge(folder, said_sealed, again=True)
    assert any("stored of main arms" in line for line in seen())


@pytest.mark.parametrize("name", FILES)
def test_damage_among_the_files_is_seen(folder, name):
    FILES[name](folder)
    assert seen() != []


@pytest.mark.parametrize("name", UNSEEN)
def test_what_only_training_again_would_tell_is_not_claimed_to_be_seen(folder, name):
    """It fails when one of them comes to be seen: then it belongs to the others."""
    forge(folder, UNSEEN[name], again=True)
    assert seen() == []


def test_a_changed_verdict_needs_an_entry_of_the_changes(folder):
    log = folder / "results" / "CHANGES.md"
    log.write_text(log.read_text().replace("`ood-transfer`", "a claim"))
    assert any("name both, the claim and" in line for line in seen())
