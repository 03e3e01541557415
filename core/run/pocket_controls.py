"""Controls of the pocket world: `python -m core.run.pocket_controls [PAPER]`.

Without a paper it says what fixed interventions do for the start policy, else where the gains of
the paper's runs lie; both under reports/pocket.
"""
# pyright: basic
# (strictly, every call into transformers is partially unknown)

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from core.models.load import BUILDS, load_policy, load_tokenizer
from core.rollout.samplers.policy import PolicySampler
from core.run.files import write_atomic
from core.run.places import reports, samples_file
from core.run.records.record import current, read_records
from core.run.records.schema import RunRecord, runs_of
from core.run.stages.stage import say
from eval.pocket.draft import FINAL
from eval.pocket.forms import Split, split_gain
from eval.pocket.suites import SUITES
from eval.samples.evaluation import Decoding
from eval.samples.store import judged, read_samples
from eval.sets.benchmarks import find_benchmark

LIMIT, LONGER = 96, 200  # tokens of an answer
CHOSEN_ON = 144  # problems of the valid split, of all kinds and levels
PREFIXES, FORBIDDEN = 4, 4  # the most frequent ones are forced, or forbidden
LINES = (3, 4, 5)
TEMPERATURES = (0.3, 1.0)


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """A fixed change of how the policy is asked, the same for every problem."""

    name: str = "free"
    start: str = ""  # every answer begins with this
    forbidden: int | None = None  # no answer begins with this token
    lines: int = 0  # so many lines stand before the final sentence
    temperature: float = 0.0
    max_tokens: int = LIMIT


class Asked:
    """A policy that answers problems of a suite under an intervention."""

    def __init__(self, name: str):
        torch.set_num_threads(1)
        self.model = load_policy(name).eval()
        self.tokenizer: Any = load_tokenizer(name)  # Any: its types are unions
        self.sampler = PolicySampler(self.model, self.tokenizer)

    def answers(self, prompts: Sequence[str], language: str, how: Intervention) -> list[str]:
        """One answer to each prompt."""
        starts = [how.start] * len(prompts)
        if how.forbidden is not None:
            starts = self.continued(prompts, starts, how.forbidden)
        texts = self.drawn(prompts, starts, how)
        final = FINAL[language].split("\\")[0]
        banned = self.tokenizer(final, add_special_tokens=False)["input_ids"][0]
        for lines in range(how.lines):
            short = [i for i, text in enumerate(texts) if text.split(final)[0].count("\n") <= lines]
            asked = [prompts[i] for i in short]
            begun = self.continued(asked, [texts[i].split(final)[0] for i in short], banned)
            for i, text in zip(short, self.drawn(asked, begun, how), strict=True):
                texts[i] = text
        return texts

    def drawn(self, prompts: Sequence[str], starts: Sequence[str], how: Intervention) -> list[str]:
        """The answers with their beginnings."""
        decoding = Decoding(max_tokens=how.max_tokens, temperature=how.temperature)
        found = self.sampler(prompts, decoding, starts) if prompts else []
        return [start + one[0].text for start, one in zip(starts, found, strict=True)]

    def continued(self, prompts: Sequence[str], starts: Sequence[str], banned: int) -> list[str]:
        """The beginnings with the likeliest next token that is not `banned`."""
        found: list[str] = []
        for prompt, start in zip(prompts, starts, strict=True):
            ids = torch.tensor([self.sampler.encode(prompt, start)])
            with torch.no_grad():
                logits = self.model(input_ids=ids).logits[0, -1]
            logits[banned] = -torch.inf
            found.append(start + self.tokenizer.decode([int(logits.argmax())]))
        return found


def interventions(asked: Asked, answers: Sequence[str]) -> list[Intervention]:
    """What is tried, given free answers of the policy."""
    ids = [asked.tokenizer(text, add_special_tokens=False)["input_ids"] for text in answers]
    tried = [Intervention(), Intervention(name="longer limit", max_tokens=LONGER)]
    for length in (1, 2, 3):
        frequent = Counter(tuple(row[:length]) for row in ids).most_common(PREFIXES)
        for tokens, _ in frequent:
            text = asked.tokenizer.decode(tokens)
            tried.append(Intervention(name=f"begins with {text!r}", start=text))
    for token, _ in Counter(row[0] for row in ids).most_common(FORBIDDEN):
        text = asked.tokenizer.decode([token])
        tried.append(Intervention(name=f"does not begin with {text!r}", forbidden=token))
    tried.append(Intervention(name="a program", start="```python\n"))
    tried += [Intervention(name=f"at least {n} lines", lines=n) for n in LINES]
    return tried + [Intervention(name=f"temperature {t}", temperature=t) for t in TEMPERATURES]


def scan(asked: Asked, suite: str) -> dict[str, Any]:
    """The best intervention on a suite, chosen on its valid split, and its worth on the test."""
    benchmark = find_benchmark(suite)
    valid = benchmark.load(split="valid")[:CHOSEN_ON]
    prompts = [benchmark.prompt(problem) for problem in valid]
    free = asked.answers(prompts, benchmark.language, Intervention())
    tried: dict[str, float] = {}
    named = {how.name: how for how in interventions(asked, free)}
    for name, how in named.items():
        texts = asked.answers(prompts, benchmark.language, how)
        tried[name] = share(texts, valid)
    best = max((name for name in tried if name != "free"), key=lambda name: tried[name])
    test = benchmark.load()
    prompts = [benchmark.prompt(problem) for problem in test]
    start, helped = (
        share(asked.answers(prompts, benchmark.language, how), test)
        for how in (named["free"], named[best])
    )
    say(f"{suite}: start {start:.1f} %, best of {len(tried) - 1}, {best}: {helped:.1f} %")
    return {"valid": tried, "best": best, "start": start, "helped": helped, "n": len(test)}


def share(texts: Sequence[str], problems: Any) -> float:  # Any: a sequence of problems
    """Percent of the texts that are right."""
    verdicts = judged(texts, problems)
    return 100 * sum(verdict.correct is True for verdict in verdicts) / len(problems)


def split_run(run: RunRecord) -> dict[str, Split]:
    """The gain of one run on every suite, by answers of changed and of unchanged form."""
    before = {
        row["benchmark"]: row["digest"] for row in run["start_scores"] if row["metric"] == "top1"
    }
    found: dict[str, Split] = {}
    for row in run["scores"]:
        if row["metric"] == "top1" and row["benchmark"] in before:
            digests = before[row["benchmark"]], row["digest"]
            pair = [read_samples(samples_file(digest), digest) for digest in digests]
            found[row["benchmark"]] = split_gain(*pair)
    return found


def write(name: str, found: object) -> None:
    """Write what was found under reports/pocket."""
    path = reports() / "pocket" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def main(paper: str | None = None) -> None:
    """Scan the builds of the start policy; or split the gains of a paper's runs by form."""
    if paper is None:
        names = BUILDS["pocket-instruct"]
        write("interventions", {name: scans(name) for name in names})
        return
    gains = {
        f"{run['arm']} {run['seed']}": {s: asdict(split) for s, split in split_run(run).items()}
        for run in runs_of(current(read_records(paper)))
    }
    write(f"gains-{paper}", gains)


def scans(name: str) -> dict[str, Any]:
    """The scan of one build on every suite."""
    asked = Asked(name)
    return {suite: scan(asked, suite) for suite in SUITES}


if __name__ == "__main__":
    main(*sys.argv[1:])
