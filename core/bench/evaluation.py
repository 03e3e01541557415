"""Seconds of an evaluation: our sampler beside the `hf` model of lm-eval on the same requests."""
# pyright: basic
# (strictly, every call into lm_eval is partially unknown)

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from core.bench.measure import Measure, in_turn, seconds
from core.models.load import load_policy, load_tokenizer, locate
from core.models.pocket import Size, new_model
from core.rollout.native.native import NativeEngine
from core.rollout.samplers.policy import PolicySampler
from eval.errors import BadValue
from eval.samples.evaluation import Decoding
from eval.sets.benchmarks import find_benchmark

SUITE = "pocket-gsm8k"
# problems, samples of each and batch size; lm-eval's own is 1
WORK = ((500, 1, 32), (125, 8, 32), (100, 1, 1))
ROUNDS = 5  # of both sides in turn
TEMPERATURE = 0.7  # of the samples
RANDOM = Size(hidden=64, inner=256, layers=2, heads=4)  # 200 thousand parameters
MAX_TOKENS = 96


def bench_evaluation() -> list[Measure]:
    """`WORK` by the pocket policy and by a random Llama; what has one sample is greedy.

    On all the threads that torch has: ours decodes in as many processes.

    Raises:
        BadValue: lm-eval is not installed.
    """
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        raise BadValue("the peer is missing: pip install 'repro-papers[lm-eval]'") from error
    found: list[Measure] = []
    benchmark = find_benchmark(SUITE)
    prompts = [benchmark.prompt(problem) for problem in benchmark.load(limit=WORK[0][0])]
    with models() as folders:
        for name, folder in folders.items():
            policy, tokenizer = load_policy(folder), load_tokenizer(folder)
            for problems, samples, rows in WORK:
                mine = PolicySampler(policy, tokenizer, NativeEngine(policy, rows))
                other: Any = HFLM  # Any: lm-eval wraps its constructor
                peer = other(pretrained=folder, batch_size=rows, device="cpu", dtype="float32")
                named = f"{name}, batch {rows}"
                found.append(compare(named, mine, peer, prompts[:problems], samples))
    return found


def compare(
    name: str, mine: PolicySampler, peer: Any, prompts: Sequence[str], samples: int
) -> Measure:
    """Both sides in turn on the same prompts; greedily also how many answers are equal."""
    answers: dict[str, list[str]] = {}

    def ours() -> None:
        answers["ours"] = answers_of(mine, prompts, samples)

    def theirs() -> None:
        answers["theirs"] = answers_of_peer(peer, prompts, samples)

    found = in_turn(
        lambda: [seconds(ours)],
        lambda: [seconds(theirs)],
        ROUNDS,
        name=f"{name}, {samples} samples",
        unit="s",
        peer="lm-eval hf",
        at_least=3.0,
    )
    if samples > 1:
        return found
    equal = sum(a == b for a, b in zip(answers["ours"], answers["theirs"], strict=True))
    return replace(found, name=f"{name}, {equal} of {len(prompts)} equal")


@contextmanager
def models() -> Iterator[dict[str, str]]:
    """Folders of the two models: the pocket policy, and a random Llama that never stops early."""
    with TemporaryDirectory() as folder:
        tokenizer = load_tokenizer("pocket-instruct")
        new_model(RANDOM, tokenizer, 0).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        yield {"pocket-instruct": locate("pocket-instruct"), "random 2-layer Llama": folder}


def answers_of(sampler: PolicySampler, prompts: Sequence[str], samples: int) -> list[str]:
    """Our answers, prompt by prompt."""
    temperature = 0.0 if samples == 1 else TEMPERATURE
    decoding = Decoding(samples=samples, temperature=temperature, max_tokens=MAX_TOKENS)
    return [one.text for row in sampler(prompts, decoding) for one in row]


def answers_of_peer(lm: Any, prompts: Sequence[str], samples: int) -> list[str]:
    """The answers to what lm-eval's runner would ask for."""
    from lm_eval.api.instance import Instance

    drawn = {"do_sample": True, "temperature": TEMPERATURE, "top_k": 0, "top_p": 1.0}
    greedy = {"do_sample": False, "temperature": 0.0}
    settings = {"until": [], "max_gen_toks": MAX_TOKENS, **(greedy if samples == 1 else drawn)}
    turns = [lm.apply_chat_template([{"role": "user", "content": text}]) for text in prompts]
    asked = [
        Instance("generate_until", {}, (t, settings), 0) for t in turns for _ in range(samples)
    ]
    return lm.generate_until(asked, disable_tqdm=True)
