"""Seconds of an evaluation: our sampler and lm-eval's `hf` model on the same requests."""
# pyright: basic
# (strictly, every call into lm_eval is partially unknown)

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from core.bench.measure import Measure, in_turn, seconds
from core.models.folders import locate
from core.models.load import load_policy, load_tokenizer
from core.models.pocket import Size, new_model
from core.rollout.native.native import NativeEngine
from core.samplers.policy import PolicySampler
from eval.errors import BadValue
from eval.samples.evaluation import Decoding
from eval.sets.benchmarks import find_benchmark

if TYPE_CHECKING:
    from lm_eval.models.huggingface import HFLM  # of an extra

SUITE = "pocket-gsm8k"
# problems, samples of each and batch size; lm-eval's default batch size is 1
WORK = ((500, 1, 32), (125, 8, 32), (100, 1, 1))
ROUNDS = 5  # of both sides in turn
TEMPERATURE = 0.7  # of the samples
RANDOM = Size(hidden=64, inner=256, layers=2, heads=4)  # 200 thousand parameters
MAX_TOKENS = 96


def bench_evaluation() -> list[Measure]:
    """Measure `WORK` with the pocket policy and with a random Llama; single samples are greedy.

    Both sides use all threads of torch; our sampler decodes in as many processes.

    Raises:
        BadValue: lm-eval is not installed.
    """
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        raise BadValue("the peer is missing: pip install 'repro-papers[lm-eval]'") from error
    measures: list[Measure] = []
    benchmark = find_benchmark(SUITE)
    prompts = [benchmark.prompt(problem) for problem in benchmark.load(limit=WORK[0][0])]
    with models() as folders:
        for name, folder in folders.items():
            policy, tokenizer = load_policy(folder), load_tokenizer(folder)
            for problems, samples, rows in WORK:
                mine = PolicySampler(policy, tokenizer, NativeEngine(policy, rows))
                constructor: Any = HFLM  # Any: lm-eval wraps its constructor
                peer = constructor(
                    pretrained=folder, batch_size=rows, device="cpu", dtype="float32"
                )
                title = f"{name}, batch {rows}"
                measures.append(compare(title, mine, peer, prompts[:problems], samples))
    return measures


def compare(
    name: str, mine: PolicySampler, peer: "HFLM", prompts: Sequence[str], samples: int
) -> Measure:
    """Measure both sides in turn on the same prompts; greedy decoding also counts equal answers."""
    answers: dict[str, list[str]] = {}

    def ours() -> None:
        answers["ours"] = answers_of(mine, prompts, samples)

    def theirs() -> None:
        answers["theirs"] = answers_of_peer(peer, prompts, samples)

    measure = in_turn(
        lambda: [seconds(ours)],
        lambda: [seconds(theirs)],
        ROUNDS,
        name=f"{name}, {samples} samples",
        unit="s",
        peer="lm-eval hf",
        at_least=3.0,
    )
    if samples > 1:
        return measure
    equal = sum(a == b for a, b in zip(answers["ours"], answers["theirs"], strict=True))
    return replace(measure, name=f"{name}, {equal} of {len(prompts)} equal")


@contextmanager
def models() -> Iterator[dict[str, str]]:
    """Yield the folders of two models: the pocket policy and a random Llama."""
    with TemporaryDirectory() as folder:
        tokenizer = load_tokenizer("pocket-instruct")
        new_model(RANDOM, tokenizer, 0).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        yield {"pocket-instruct": locate("pocket-instruct"), "random 2-layer Llama": folder}


def answers_of(sampler: PolicySampler, prompts: Sequence[str], samples: int) -> list[str]:
    """Return our sampler's answers, prompt by prompt."""
    temperature = 0.0 if samples == 1 else TEMPERATURE
    decoding = Decoding(samples=samples, temperature=temperature, max_tokens=MAX_TOKENS)
    return [answer.text for row in sampler(prompts, decoding) for answer in row]


def answers_of_peer(lm: "HFLM", prompts: Sequence[str], samples: int) -> list[str]:
    """Return the peer's answers to the requests that lm-eval's runner would make."""
    from lm_eval.api.instance import Instance

    random = {"do_sample": True, "temperature": TEMPERATURE, "top_k": 0, "top_p": 1.0}
    greedy = {"do_sample": False, "temperature": 0.0}
    settings = {"until": [], "max_gen_toks": MAX_TOKENS, **(greedy if samples == 1 else random)}
    turns = [lm.apply_chat_template([{"role": "user", "content": text}]) for text in prompts]
    requests = [
        Instance("generate_until", {}, (t, settings), 0) for t in turns for _ in range(samples)
    ]
    return lm.generate_until(requests, disable_tqdm=True)  # pyright: ignore[reportCallIssue] - a decorator hides its parameters
