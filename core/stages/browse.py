"""The page of a run's answers, those before and after training side by side."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from core.records.files import write_atomic
from core.records.places import from_here
from core.settings.canonical import digest_of
from core.stages.chain import Chain
from core.stages.evaluate import SAMPLES, Evaluate
from core.stages.questions import PLAIN_MODE, Question
from core.stages.stage import PAGE
from eval.samples.prompted_samples import with_questions
from eval.samples.store import read_samples
from eval.tables.page import SampleSet, render_page
from eval.terminal import say

SEAL = "<!-- sha256 of the lines above: {} -->\n"


def write_page(chain: Chain) -> Path:
    """Write the page of a finished run unless it exists already, and return its path."""
    path, arm = chain.policy.folder / PAGE, f"{chain.resolved.arm} seed {chain.seed}"
    trained = chain.evaluations(chain.policy)
    sides = [chain.evaluations(chain.start), trained] if chain.train else [trained]
    models = [chain.resolved.run.model, arm] if chain.train else [chain.resolved.run.model]
    key = digest_of([stage.key for side in sides for stage in side])
    if not is_of(path, key):
        questions = [answers(stages) for stages in zip(*sides, strict=True)]
        title = f"{chain.resolved.paper.slug}, {arm}: answers"
        page = render_page(questions, models, title, key).encode()
        write_atomic(path, page + seal_of(page))
        say(f"samples: {from_here(path)}")
    return path


def is_of(path: Path, key: str) -> bool:
    """Return whether an unaltered page of these evaluations exists; an altered page is reported."""
    if not path.is_file():
        return False
    page = path.read_bytes()
    end = len(page) - len(seal_of(b""))
    if page[end:] != seal_of(page[:end]):
        say(f"{from_here(path)} was altered or cut off: it is written again")
        return False
    return f'name="key" content="{key}"'.encode() in page[:1000]


def seal_of(page: bytes) -> bytes:
    """Return the last line of a page, with the digest of the lines above."""
    return SEAL.format(sha256(page).hexdigest()).encode()


def answers(stages: Sequence[Evaluate]) -> SampleSet:
    """Return the answers of each model to one question.

    There must be at least one stage.

    Raises:
        MissingFile, DamagedFile: the samples or the problems cannot be read.
    """
    question = stages[0].question
    problems = question.benchmark.load(limit=question.limit)
    prompts = [question.benchmark.prompt(problem, question.mode) for problem in problems]
    return SampleSet(
        name_of(question),
        tuple(
            with_questions(read_samples(stage.folder / SAMPLES), problems, prompts)
            for stage in stages
        ),
    )


def name_of(question: Question) -> str:
    """Return the suite, its mode unless step by step, and the number of samples if above 1."""
    mode = "" if question.mode == PLAIN_MODE else f" {question.mode}"
    count = question.decoding.samples
    return f"{question.suite}{mode}{f', {count} samples' if count > 1 else ''}"
