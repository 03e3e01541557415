"""Measures fixed interventions on the start policy: `python -m core.run.pocket_controls`."""
# pyright: basic
# (strictly, every call into transformers is partially unknown)

# ruff: noqa: E402 - the kernels are chosen before any import can load torch
from core.stages.kernels import pin_kernels

pin_kernels()

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from core.models.builds import BUILDS
from core.models.load import load_policy, load_tokenizer
from core.records.record import Record, new_record, write_record
from core.records.schema import SuiteControls
from core.samplers.policy import PolicySampler
from core.stages.sources import model_version
from core.verdicts.controls import CONTROLS, FREE, POCKET, START, best_of
from eval.pocket.draft import FINAL, final
from eval.pocket.suites import SUITES, pocket_digest
from eval.samples.evaluation import Decoding
from eval.samples.store import grade_outputs
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Problem
from eval.terminal import say

LIMIT, LONGER = 96, 200  # tokens of an answer
CHOSEN_ON = 144  # problems of the valid split, of all kinds and levels
PREFIXES, FORBIDDEN = 4, 4  # the most frequent ones are forced, or forbidden
LINES = (3, 4, 5)
TEMPERATURES = (0.3, 1.0)
DIVIDED = re.compile(r"(?:^|\n)(\d+)/(\d+)=[^\n]+\n(?=[^\n]*\\boxed)")  # by the last line


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """A fixed change of how the policy is asked, the same for every problem."""

    name: str = FREE
    start: str = ""  # every answer begins with this
    forbidden: int | None = None  # no answer begins with this token
    lines: int = 0  # so many lines stand before the final sentence
    restore_division: bool = False  # the last line, if it divides or reduces, is left out
    temperature: float = 0.0
    max_tokens: int = LIMIT


class AskedPolicy:
    """A policy that answers problems of a suite under an intervention."""

    def __init__(self, name: str):
        torch.set_num_threads(1)
        self.model = load_policy(name).eval()
        self.tokenizer: Any = load_tokenizer(name)  # Any: its types are unions
        self.sampler = PolicySampler(self.model, self.tokenizer)

    def answers(self, prompts: Sequence[str], language: str, how: Intervention) -> list[str]:
        """Return one answer to each prompt under an intervention."""
        starts = [how.start] * len(prompts)
        if how.forbidden is not None:
            starts = self.continue_without(prompts, starts, how.forbidden)
        texts = self.draw(prompts, starts, how)
        ending = FINAL[language].split("\\")[0]
        banned = self.tokenizer(ending, add_special_tokens=False)["input_ids"][0]
        for lines in range(how.lines):
            short = [
                i for i, text in enumerate(texts) if text.split(ending)[0].count("\n") <= lines
            ]
            pending = [prompts[i] for i in short]
            begun = self.continue_without(
                pending, [texts[i].split(ending)[0] for i in short], banned
            )
            for i, text in zip(short, self.draw(pending, begun, how), strict=True):
                texts[i] = text
        if how.restore_division:
            return [restore_division(text, language) for text in texts]
        return texts

    def draw(self, prompts: Sequence[str], starts: Sequence[str], how: Intervention) -> list[str]:
        """Return one answer to each prompt, with its given beginning."""
        decoding = Decoding(max_tokens=how.max_tokens, temperature=how.temperature)
        completions = self.sampler(prompts, decoding, starts) if prompts else []
        return [
            start + completion[0].text
            for start, completion in zip(starts, completions, strict=True)
        ]

    def continue_without(
        self, prompts: Sequence[str], starts: Sequence[str], banned: int
    ) -> list[str]:
        """Return each beginning with the likeliest next token other than `banned`."""
        beginnings: list[str] = []
        for prompt, start in zip(prompts, starts, strict=True):
            ids = torch.tensor([self.sampler.encode(prompt, start)])
            with torch.no_grad():
                logits = self.model(input_ids=ids).logits[0, -1]
            logits[banned] = -torch.inf
            beginnings.append(start + self.tokenizer.decode([int(logits.argmax())]))
        return beginnings


def restore_division(text: str, language: str) -> str:
    """Return an answer with its last division replaced by the fraction itself.

    The fraction has the value of the replaced result. A grader of values accepts it; where lowest
    terms are asked for it is wrong. Answers without a last division are returned unchanged.
    """
    match = DIVIDED.search(text)
    if match is None:
        return text
    over, under = match.groups()
    ending = final(f"\\frac{{{over}}}{{{under}}}", language)
    return f"{text[: match.start()]}\n{ending}"


def interventions(policy: AskedPolicy, answers: Sequence[str]) -> list[Intervention]:
    """Return the interventions to try, given free answers of the policy."""
    ids = [policy.tokenizer(text, add_special_tokens=False)["input_ids"] for text in answers]
    tried = [Intervention(), Intervention(name="longer limit", max_tokens=LONGER)]
    for length in (1, 2, 3):
        frequent = Counter(tuple(row[:length]) for row in ids).most_common(PREFIXES)
        for tokens, _ in frequent:
            text = policy.tokenizer.decode(tokens)
            tried.append(Intervention(name=f"begins with {text!r}", start=text))
    for token, _ in Counter(row[0] for row in ids).most_common(FORBIDDEN):
        text = policy.tokenizer.decode([token])
        tried.append(Intervention(name=f"does not begin with {text!r}", forbidden=token))
    tried.append(Intervention(name="a program", start="```python\n"))
    tried += [Intervention(name=f"at least {n} lines", lines=n) for n in LINES]
    tried.append(Intervention(name="last division left out", restore_division=True))
    return tried + [Intervention(name=f"temperature {t}", temperature=t) for t in TEMPERATURES]


def scan(policy: AskedPolicy, suite: str) -> SuiteControls:
    """Return the shares of right answers under every intervention on the valid split of a suite.

    The best intervention is also scored on the test split, beside the free policy.
    """
    benchmark = find_benchmark(suite)
    valid = benchmark.load(split="valid")[:CHOSEN_ON]
    prompts = [benchmark.prompt(problem) for problem in valid]
    free = policy.answers(prompts, benchmark.language, Intervention())
    tried: dict[str, float] = {}
    by_name = {how.name: how for how in interventions(policy, free)}
    for name, how in by_name.items():
        texts = policy.answers(prompts, benchmark.language, how)
        tried[name] = share(texts, valid)
    best = best_of(tried)
    test = benchmark.load()
    prompts = [benchmark.prompt(problem) for problem in test]
    start, helped = (
        share(policy.answers(prompts, benchmark.language, how), test)
        for how in (by_name[FREE], by_name[best])
    )
    say(f"{suite}: start {start:.1f} %, best of {len(tried) - 1}, {best}: {helped:.1f} %")
    return {"valid": tried, "best": best, "start": start, "helped": helped, "n": len(test)}


def share(texts: Sequence[str], problems: Sequence[Problem]) -> float:
    """Return the percentage of texts that answer their problem correctly."""
    verdicts = grade_outputs(texts, problems)
    return 100 * sum(verdict.correct is True for verdict in verdicts) / len(problems)


def write_scan(name: str, suites: Mapping[str, SuiteControls], data: str) -> Record:
    """Write the record of one build's scan in a version of the pocket world, and return it."""
    return write_record(
        new_record(
            CONTROLS,
            paper=POCKET,
            scale="cpu",
            model={"name": name, "digest": model_version(name)},
            data=data,
            chosen_on=CHOSEN_ON,
            suites=suites,
        )
    )


def main() -> None:
    """Scan every build of the start policy."""
    data = pocket_digest()
    for name in BUILDS[START]:
        write_scan(name, scans(name), data)


def scans(name: str) -> dict[str, SuiteControls]:
    """Return the scan of one build on every suite."""
    policy = AskedPolicy(name)
    return {suite: scan(policy, suite) for suite in SUITES}


if __name__ == "__main__":
    main()
