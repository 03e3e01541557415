"""Seconds of an evaluation: our sampler beside the `hf` model of lm-eval on the same requests."""
# pyright: basic
# (strictly, every call into lm_eval is partially unknown)

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from core.models.load import load_policy, load_tokenizer, locate
from core.models.pocket import Size, new_model
from core.rollout.native import NativeEngine
from core.rollout.sampler import PolicySampler
from core.run.bench.measure import Measure, seconds
from eval.benchmarks import find_benchmark
from eval.errors import BadValue
from eval.scoring import Decoding

SUITE, PROBLEMS, SAMPLES, ROWS = "pocket-gsm8k", 500, 8, 32
TEMPERATURE = 0.7  # of the samples
RANDOM = Size(hidden=64, inner=256, layers=2, heads=4)  # 200 thousand parameters
MAX_TOKENS = 96


def bench_evaluation() -> list[Measure]:
    """500 problems greedily and 8 times each, by the pocket policy and by a random Llama.

    Raises:
        BadValue: lm-eval is not installed.
    """
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        raise BadValue("the peer is missing: pip install 'repro[lm-eval]'") from error
    found: list[Measure] = []
    benchmark = find_benchmark(SUITE)
    prompts = [benchmark.prompt(problem) for problem in benchmark.load(limit=PROBLEMS)]
    with models() as folders:
        for name, folder in folders.items():
            policy = load_policy(folder)
            mine = PolicySampler(policy, load_tokenizer(folder), NativeEngine(policy, ROWS))
            other: Any = HFLM  # Any: lm-eval wraps its constructor
            peer = other(pretrained=folder, batch_size=ROWS, device="cpu", dtype="float32")
            for samples in (1, SAMPLES):
                ours, took = timed(partial(answers_of, mine, prompts, samples))
                theirs, peer_took = timed(partial(answers_of_peer, peer, prompts, samples))
                equal = sum(a == b for a, b in zip(ours, theirs, strict=True))
                what = f"{equal} of {PROBLEMS} equal" if samples == 1 else f"{samples} samples"
                found.append(
                    Measure(
                        name=f"{name}, {what}",
                        unit="s",
                        ours=took,
                        theirs=peer_took,
                        peer="lm-eval hf",
                    )
                )
    return found


@contextmanager
def models() -> Iterator[dict[str, str]]:
    """Folders of the two models: the pocket policy, and a random Llama that never stops early."""
    with TemporaryDirectory() as folder:
        tokenizer = load_tokenizer("pocket-instruct")
        new_model(RANDOM, tokenizer, 0).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        yield {"pocket-instruct": locate("pocket-instruct"), "random 2-layer Llama": folder}


def timed(work: Callable[[], list[str]]) -> tuple[list[str], float]:
    """The answers and the seconds they took."""
    answers: list[str] = []
    return answers, seconds(lambda: answers.extend(work()))


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
