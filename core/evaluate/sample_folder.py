"""The samples of `repro eval --out`: a file and a page per benchmark, resumable after a kill."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import torch

from core.records.files import file_digest, no_space, write_atomic
from core.records.notes import read_note, write_note
from core.samplers.journal import Journal, difference
from core.samplers.policy import AnySampler
from core.samplers.served import Service
from core.settings.canonical import canonical, canonical_text, digest_of
from core.stages.loading import Loading
from core.stages.sources import model_version
from core.stages.tools import Tools, no_tools
from eval.errors import BadValue, DamagedFile
from eval.grading import GRADER_VERSION
from eval.samples.evaluation import Decoding, run_benchmark
from eval.samples.prompted_samples import PromptedSample, read_graded, with_questions
from eval.samples.side_by_side import by_paper, judge_both
from eval.samples.store import write_samples
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import FEW_SHOT, PAL
from eval.sets.problem import Problem
from eval.tables.page import SampleSet, render_page


def samples_in(
    folder: Path,
    model: str,
    load: Callable[[], AnySampler],
    benchmark: Benchmark,
    *,
    data: Path | None,
    limit: int | None,
    mode: str,
    decoding: Decoding,
    service: Service | None = None,
    loading: Loading,
    tools: Tools = no_tools,
) -> list[PromptedSample]:
    """Return a model's samples of a folder: read from it, or drawn with the loaded sampler.

    Raises:
        BadValue: the folder holds samples of another request.
        DamagedFile: a file was altered or cut off.
    """
    problems = benchmark.load(data, limit)
    prompts = [benchmark.prompt(problem, mode) for problem in problems]
    request = question(model, problems, prompts, mode, decoding) | conditions(service, loading)

    def draw(path: Path) -> list[PromptedSample]:
        sampler = load()
        hardware = {"threads": torch.get_num_threads(), "device": loading.place.type}
        with Journal(path, request | hardware) as journal:
            solver = tools(sampler.with_journal(journal), journal)
            samples = run_benchmark(
                solver, benchmark, data=data, limit=limit, mode=mode, decoding=decoding
            )
        chat, system = mode not in (FEW_SHOT, PAL), decoding.system
        sizes = [sampler.prompt_tokens(prompt, chat=chat, system=system) for prompt in prompts]
        prompted = with_questions(samples, problems, prompts, sizes)
        verdicts = judge_both(samples, problems, benchmark, mode)
        return [replace(s, **by_paper(v.paper)) for s, v in zip(prompted, verdicts, strict=True)]

    samples = SampleFolder(folder=folder, name=benchmark.name, model=model, asked=request)
    return samples.samples(draw)


def question(
    model: str, problems: Sequence[Problem], prompts: Sequence[str], mode: str, decoding: Decoding
) -> dict[str, object]:
    """Return the part of a request that identifies the model, the problems and the decoding.

    Returns:
        `model` (version of the model), `problems` (number), `questions` (digest of the ids, answers
        and prompts), `mode`, and each field of `decoding`, `seed` included, under its own name.
    """
    questions = [[p.id, p.answer, prompt] for p, prompt in zip(problems, prompts, strict=True)]
    return {
        "model": model_version(model),
        "problems": len(problems),
        "questions": digest_of(questions),
        "mode": mode,
        **asdict(decoding),
    }


def conditions(service: Service | None, loading: Loading) -> dict[str, object]:
    """Return the other conditions of samples: versions, server, a precision other than float32."""
    return {
        "grader": GRADER_VERSION,
        **{name: version(name) for name in ("torch", "transformers")},
        **({} if service is None else service.record_fields),
        **({} if loading.dtype == "float32" else {"dtype": loading.dtype}),
        **loading.record_fields,
    }


@dataclass(frozen=True, kw_only=True)
class SampleFolder:
    """The samples of one benchmark in a folder, and the request they answer (`asked`).

    `NAME.jsonl.gz` holds the samples and `NAME.html` the page to browse them. `NAME.json`, written
    last, holds the request and the digest of the samples. Until then `NAME.journal` holds finished
    batches.
    """

    folder: Path
    name: str
    model: str
    asked: Mapping[str, object]

    def samples(self, draw: Callable[[Path], list[PromptedSample]]) -> list[PromptedSample]:
        """Return the stored samples, or draw and store them; `draw` takes the journal's path.

        Raises:
            BadValue: the folder holds samples of another request.
            DamagedFile: a file was altered or cut off.
        """
        path, note, journal = (self.file(end) for end in ("jsonl.gz", "json", "journal"))
        if self.has_samples(path, note):
            samples = read_graded(path, PromptedSample)
            self.write_page(samples)
            return samples
        if path.exists() and not note.exists() and not journal.exists():
            raise BadValue(
                f"{path} exists without the note of this command beside it: move it away or give "
                "another --out"
            )
        with no_space(self.folder):
            samples = draw(journal)
            write_samples(path, samples)
            self.write_page(samples)
            stored = {"asked": canonical(self.asked), "digest": file_digest(path)}
            write_note(note, stored)
        journal.unlink(missing_ok=True)
        return samples

    def write_page(self, samples: list[PromptedSample]) -> None:
        """Write the page to browse the samples."""
        page = render_page(
            [SampleSet(self.name, (samples,))], [self.model], f"{self.name} by {self.model}"
        )
        write_atomic(self.file("html"), page)

    def file(self, end: str) -> Path:
        """Return the path of a file of this benchmark."""
        return self.folder / f"{self.name}.{end}"

    def has_samples(self, path: Path, note: Path) -> bool:
        """Return whether a complete sample file exists for this request.

        Raises:
            BadValue: the samples answer another request.
            DamagedFile: the sample file was altered or cut off.
        """
        if not note.exists():
            return False
        stored = read_note(note, "move it away")
        request, digest = dict(stored["asked"]), str(stored["digest"])
        if changed := difference(request, as_stored(self.asked)):
            raise BadValue(f"{note}: made with {changed}; give another --out or the same settings")
        if path.exists() and file_digest(path) != digest:
            raise DamagedFile(f"{path} was altered or cut off; delete it to make it again")
        return path.exists()


def as_stored(request: Mapping[str, object]) -> dict[str, object]:
    """Return a request as a note stores it: with lists instead of tuples."""
    return json.loads(canonical_text(request))
