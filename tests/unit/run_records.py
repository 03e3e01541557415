"""Makes records of runs with real graded samples, without a model."""

from functools import partial
from shutil import copyfile

from core.pages.render import render_all
from core.pages.tables import record_reported
from core.paper.registry import find_paper
from core.records.form_splits import form_splits
from core.records.places import Shelf, own_results, root
from core.records.record import named_record, new_record, read_records, write_record
from core.records.run_samples import read_run_samples, write_run_samples
from core.records.sample_files import sample_files
from core.run.publish import move
from core.settings.resolve import resolve
from core.stages.evaluate import Scored, at_k_curve, score_rows
from core.stages.outcomes import held_out_outcomes, outcomes_of
from core.stages.questions import Question
from core.stages.record import request_of
from core.stages.sources import model_version
from core.stages.start import Chosen
from core.verdicts.verdict_records import judge_again
from eval.pocket.suites import DRAWS
from eval.samples.evaluation import Completion, Decoding, run_benchmark
from eval.samples.store import Sample, read_samples, write_samples

SUITES = {"gsm8k": "pocket-gsm8k", "math": "pocket-math"}
LIMIT = 60
START_RIGHT = 20
STEPS = {"cpu": 36, "gpu": 200, "paper": 3}


def answering(benchmark, right):
    """A sampler that solves the first `right` problems, or the problems with these numbers."""
    solved = range(right) if isinstance(right, int) else right
    problems = benchmark.load(limit=LIMIT)

    def sampler(prompts, decoding):
        del prompts
        texts = [
            f"The answer is \\boxed{{{p.answer}}}." if i in solved else "I do not know."
            for i, p in enumerate(problems)
        ]
        return [[Completion(text, 5, truncated=False)] * decoding.samples for text in texts]

    return sampler


def made_file(digest):
    """Return the path of samples that were made here, as a stage leaves them."""
    return root() / "made" / f"{digest}.jsonl.gz"


def made(digest):
    """Return the samples of a digest that were made here."""
    return read_samples(made_file(digest), digest)


def stored(samples):
    """Store samples for records that refer to them; return their digest."""
    digest = write_samples(made_file("new"), samples)
    made_file("new").rename(made_file(digest))
    return digest


def write_run(record, read=made):
    """Store a record of a run and its samples, which `read` returns by their digests."""
    write_run_samples(named_record(record), read, own_results())
    return write_record(record)


def written_again(record, **changed):
    """Store the record of a run with other contents, and the same samples."""
    content = {name: value for name, value in record.items() if name != "digest"}
    return write_run(content | changed, partial(read_run_samples, record))


def published(slug):
    """Publish all records, without the checks that those of a test fail; the pages of a paper."""
    record_reported(find_paper(slug))
    judge_again(find_paper(slug))
    move(read_records())
    return render_all((slug,), Shelf.PUBLISHED)


def asked(question, right):
    """The samples of a question, of which so many problems are solved, and their digest."""
    how = {"limit": LIMIT, "decoding": question.decoding}
    samples = run_benchmark(answering(question.benchmark, right), question.benchmark, **how)
    return samples, {"mirrors": question.mirrors, "digest": stored(samples)}


def question_of(suite, mirrors, seed, **more):
    """What is asked of a suite, on the draw of the seed."""
    return Question(suite=suite, mirrors=mirrors, limit=LIMIT, draw=seed % DRAWS, **more)


def scored(suite, mirrors, right, seed=0):
    """One row of scores, its samples stored."""
    question = question_of(suite, mirrors, seed, decoding=Decoding())
    samples, named = asked(question, right)
    return {**score_rows(samples, question)[0], **named}


def curves_at_k(suite, mirrors, right, seed=0):
    """Maj@K and Pass@K on a suite, before and after, of so many solved problems."""
    how = Decoding(samples=4, temperature=1.0)
    question = question_of(suite, mirrors, seed, curves=True, decoding=how)
    curves = {}
    for when, solved in (("before", START_RIGHT), ("after", right)):
        samples, named = asked(question, solved)
        curves[when] = at_k_curve(samples, question) | named
    return {"mirrors": mirrors, **curves}


def held_out(right):
    """The digest of held-out answers of which so many percent are right."""
    plain = {"output": "", "tokens": 1, "truncated": False, "extracted": None}
    return stored(
        Sample(
            benchmark="held-out",
            id=str(number),
            sample=0,
            correct=number < right,
            rule="",
            reason="",
            **plain,
        )
        for number in range(100)
    )


def config(slug, arm, scale):
    """The settings of an arm as a record holds them."""
    return request_of(resolve(find_paper(slug), arm=arm, scale=scale))["config"]


def run_record(
    right,
    *,
    slug="deepseekmath-grpo",
    arm="grpo",
    seed=0,
    created="2026-01-01",
    scale="cpu",
    suites=SUITES,
    at_k=False,
    sealed=False,
    overrides=None,
):
    """Store a run that solves the first `right` problems of each suite, or those of these numbers.

    If it is `sealed`, without texts.
    """
    count = right if isinstance(right, int) else len(right)
    rows = {
        name: [scored(suite, mirrors, n, seed) for mirrors, suite in suites.items()]
        for name, n in (("start_scores", START_RIGHT), ("scores", right))
    }
    forms = form_splits(rows["start_scores"], rows["scores"], made)
    chosen = Chosen(resolve(find_paper(slug), arm=arm, scale=scale).run.model, seed=seed)
    heldout = {0: 20.0, 3: min(100.0, count + 10.0)}
    content = {
        "paper": slug,
        "scale": scale,
        "arm": arm,
        "main": arm == "grpo",
        "seed": seed,
        "config": config(slug, arm, scale),
        "overrides": overrides or {},
        "start_model": chosen.name,
        "size": "0.9M",
        "model": {
            "name": chosen.name,
            "digest": model_version(chosen.model),
            "parameters": 900_000,
            **chosen.build,
        },
        "data": {"name": "pocket", "digest": "0", "rows": 100},
        "train": {
            "steps": STEPS[scale],
            "plan": "8 completions",
            "weights": f"{arm} {seed}",
            "held_out": {str(step): held_out(share) for step, share in heldout.items()},
        },
        "curves": {
            "reward": [[1, 0.1], [3, count + seed / 100]],
            "held_out/accuracy": [[step, share] for step, share in heldout.items()],
        },
        "sampling": {
            suite: curves_at_k(suite, mirrors, right, seed)
            for mirrors, suite in (SUITES if at_k else {}).items()
        },
        "forms": forms,
        "created": created,
    }
    record = new_record("run", **content, **rows)
    return write_run(without_texts(record) if sealed else record)


def without_texts(record):
    """Return the record as it is of another arm than the main one, without its texts."""
    files = {digest: made_file(digest) for digest in sample_files(record)}
    at_k = {suite: change["after"] for suite, change in record["sampling"].items()}
    after = outcomes_of(Scored(scores=record["scores"], at_k=at_k, files=files))
    train, seen = held_out_outcomes(record["train"], Scored(files=files))
    sampling = {
        suite: change | {"after": after.at_k[suite]} for suite, change in record["sampling"].items()
    }
    for digest, path in (after.files | seen.files).items():
        if path != made_file(digest):
            copyfile(path, made_file(digest))
    return record | {"scores": after.scores, "train": train, "sampling": sampling}
