"""Uniform diffusion: noise, any split of a step, padding, prompts, resume, and exact sampling."""

from itertools import pairwise, product
from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig

from core import UniformDiffusionConfig, UniformDiffusionTrainer
from core.data.sets import find_set
from core.data.sft import IGNORED
from core.diffusion.bigrams import bigram_distance
from core.diffusion.noise import EDGE, symbol_count, uniform_noise
from core.diffusion.reverse_steps import draw_texts, step_posterior
from core.losses.diffusion import MODEL_PREDICTIONS, denoising_loss
from core.models.denoisers import load_denoiser
from core.models.load import load_policy
from core.models.nano import nano_encoder, untrained_tokenizer
from eval.errors import BadValue, DamagedFile
from eval.nano.canvas import LENGTH as SYMBOLS_OF_A_TEXT
from eval.nano.canvas import SYMBOLS as ALPHABET
from eval.nano.canvas import bigram_chances, chain

pytestmark = pytest.mark.versions

TEXTS = [{"text": "abcdefgh"[: 3 + place % 5] * (1 + place % 2)} for place in range(10)]
PAIRS = [{"prompt": "abc"[: 1 + place % 3], "completion": "hgfed"} for place in range(10)]
CLOSE = 1e-5


@pytest.fixture
def build(tmp_path):
    def make(rows=None, data=None, evaluation=None, model=None, peft=None, **changes):
        settings = {
            "output_dir": str(tmp_path),
            "max_steps": 1,
            "learning_rate": 1e-2,
            "lr_scheduler_type": "constant",
            "optim": "sgd",
            "max_grad_norm": 0.0,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "per_device_train_batch_size": 10,
        }
        return UniformDiffusionTrainer(
            model=model or nano_encoder(1),
            args=UniformDiffusionConfig(**{**settings, **changes}),
            train_dataset=Dataset.from_list(rows or TEXTS) if data is None else data,
            eval_dataset=evaluation,
            processing_class=untrained_tokenizer("nano-encoder"),
            peft_config=peft,
        )

    return make


def weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def train(trainer):
    trainer.train()
    return [row for row in trainer.state.log_history if "loss" in row], weights(trainer)


@pytest.mark.parametrize("prediction", MODEL_PREDICTIONS)
def test_ten_rows_are_one_step_however_they_are_split(prediction, build):
    parts = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}
    (whole, one), (split, other) = (
        train(build(model_prediction=prediction, **changes)) for changes in ({}, parts)
    )
    start = weights(build())
    assert (one - start).norm() > 1e-3
    assert (one - other).norm() < CLOSE * (one - start).norm()
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], rel=1e-4)
    assert split[0]["num_tokens"] == whole[0]["num_tokens"]


@pytest.mark.parametrize("prediction", MODEL_PREDICTIONS)
@pytest.mark.parametrize("rows", [TEXTS, PAIRS])
def test_the_loss_is_the_mean_over_tokens_of_each_row_alone_and_prompts_have_no_noise(
    rows, prediction, build
):
    trainer = build(rows=rows, model_prediction=prediction, learning_rate=0.0)
    ((logged, *_), _), model = train(trainer), trainer.model.eval()
    losses = []
    for place, row in enumerate(trainer.train_dataset):
        labels = torch.tensor([row["labels"]])
        is_clean = labels != IGNORED
        noise = uniform_noise(labels, [place], symbol_count(model), seed=42, step=1)
        noisy = torch.tensor([row["input_ids"]])
        noisy[is_clean] = noise.tokens
        logits = model(input_ids=noisy).logits[is_clean].double()
        losses += denoising_loss(prediction, logits, *noise, labels[is_clean]).tolist()
    assert logged["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    prompts = sum(len(row.get("prompt", "")) for row in rows)
    assert len(losses) + prompts == logged["num_tokens"]


def test_noise_keeps_a_token_with_probability_alpha_and_else_draws_any_symbol():
    labels = torch.full((400, 60), 3)
    labels[:, 50:] = IGNORED
    noise = uniform_noise(labels, range(400), 7, seed=1, step=2)
    tokens, kept = (column.view(400, 50) for column in noise)
    levels = kept[:, 0]
    assert (kept == levels.unsqueeze(1)).all()
    assert EDGE <= levels.min() < 0.02 < 0.98 < levels.max() <= 1 - EDGE
    assert levels.mean().item() == pytest.approx(0.5, abs=0.05)
    excess = (tokens == 3).double() - kept - (1 - kept) / 7
    assert excess.mean().item() == pytest.approx(0.0, abs=4 * 0.5 / 20_000**0.5)
    counts = tokens[tokens != 3].bincount(minlength=7).double()
    others = counts[counts > 0]
    assert len(others) == 6
    assert ((others - others.mean()).abs() < 4 * others.mean().sqrt()).all()


def test_noise_belongs_to_seed_step_and_row():
    labels = torch.full((2, 40), 3)
    draws = [
        uniform_noise(labels, rows, 9, seed=seed, step=step)
        for seed, step, rows in ((1, 1, (5, 6)), (1, 1, (6, 5)), (1, 2, (5, 6)), (2, 1, (5, 6)))
    ]
    first, swapped, *others = (draw.tokens.view(2, 40) for draw in draws)
    assert torch.equal(first, swapped.flip(0))
    assert not torch.equal(first[0], first[1])
    assert not any(torch.equal(first, other) for other in others)


def test_a_resumed_run_is_the_same_run(build, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    settings |= {"per_device_train_batch_size": 4, "optim": "adamw_torch"}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = build(**settings)
        trainer.train(resume_from_checkpoint=start)
        logged = [row for row in trainer.state.log_history if "loss" in row]
        names = ("step", "loss", "num_tokens", "grad_norm")
        runs.append(([[row[n] for n in names] for row in logged], weights(trainer).tolist()))
    assert runs[1] == runs[0]


def test_the_held_out_loss_does_not_depend_on_the_batch_nor_on_the_step(build):
    held_out = Dataset.from_list(TEXTS[:7])
    losses = [
        build(evaluation=held_out, per_device_eval_batch_size=size).evaluate()["eval_loss"]
        for size in (1, 3, 7)
    ]
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-5)
    trainer = build(evaluation=held_out, max_steps=2, learning_rate=0.0)
    trainer.train()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(losses[0], abs=1e-5)


def test_a_stream_and_token_ids_are_trained_on_as_texts(build):
    settings = {"per_device_train_batch_size": 5, "max_steps": 2}
    (first, *_), _ = train(build(**settings, data=Dataset.from_list(TEXTS[:5])))
    streamed, moved = train(build(**settings, data=Dataset.from_list(TEXTS).to_iterable_dataset()))
    assert streamed[0]["loss"] == pytest.approx(first["loss"], rel=1e-4)
    assert moved.isfinite().all()
    texts, ids = build(), build(rows=[{"input_ids": r["input_ids"]} for r in build().train_dataset])
    assert train(ids)[0][0]["loss"] == train(texts)[0][0]["loss"]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_are_trained_whatever_their_task(build):
    lora = LoraConfig(r=2, target_modules=["query", "value"], task_type="CAUSAL_LM")
    trainer = build(peft=lora, max_steps=2)
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    moved = {n for n, w in trainer.model.named_parameters() if not torch.equal(w, before[n])}
    assert moved
    assert all("lora" in name for name in moved)
    assert lora.task_type == "CAUSAL_LM"


def test_a_saved_model_is_loaded_again_and_a_decoder_is_refused(build, build_llama, tmp_path):
    trainer = build()
    trainer.save_model(str(tmp_path / "saved"))
    saved = load_denoiser(str(tmp_path / "saved")).state_dict()
    assert all(torch.equal(saved[name], w) for name, w in trainer.model.state_dict().items())
    (tmp_path / "saved" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(DamagedFile):
        load_denoiser(str(tmp_path / "saved"))
    with pytest.raises(BadValue, match="is a LlamaForCausalLM, in which a token is predicted from"):
        build(model=build_llama())


def test_a_loss_that_is_not_finite_stops_with_its_text(build):
    model = nano_encoder(1)
    with torch.no_grad():
        model.cls.predictions.bias[4] = float("nan")
    with pytest.raises(BadValue, match=r"loss of 'a.*': nan, expected a finite number"):
        build(model=model).train()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"model_prediction": "noise"}, "expected one of 'mean_loo', 'mean'"),
        ({"max_length": 0}, "expected at least 1"),
        ({"label_smoothing_factor": 0.1}, "is not supported"),
    ],
)
def test_settings_that_have_no_meaning_are_refused(changes, line, build):
    with pytest.raises(BadValue, match=line):
        build(**changes)


LEVELS = st.floats(0.0, 1.0, exclude_max=True)


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), st.integers(0, 3), LEVELS, LEVELS)
def test_a_step_is_bayes_rule_of_the_noise(weights_of, noisy, kept, change):
    """For each clean token v, p(y | x, v) is p(y | v) p(x | y) over their sum over y."""
    before = kept + (1 - kept) * max(change, 1e-3)
    denoised = torch.tensor([weights_of], dtype=torch.float64)
    denoised /= denoised.sum()
    eye = torch.eye(4, dtype=torch.float64)
    to_y, to_x = (alpha * eye + (1 - alpha) / 4 for alpha in (before, kept / before))
    joint = to_y * to_x[:, noisy]  # of v and y
    expected = denoised @ (joint / joint.sum(1, keepdim=True))
    found = step_posterior(denoised, torch.tensor([noisy]), kept, before)
    assert found[0].tolist() == pytest.approx(expected[0].tolist(), abs=1e-12)


SYMBOLS, LENGTH, PLACES = 3, 3, torch.tensor([9, 3, 1])
STATES = torch.tensor(list(product(range(SYMBOLS), repeat=LENGTH)))
CHAIN = torch.tensor([[0.8, 0.15, 0.05], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], dtype=torch.float64)
DATA = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)[STATES[:, 0]]
DATA = DATA * CHAIN[STATES[:, 0], STATES[:, 1]] * CHAIN[STATES[:, 1], STATES[:, 2]]


def leave_one_out(ids, kept):
    """The exact posterior (B, T, K) of each clean token given all other noisy ones."""
    same = (ids.unsqueeze(1) == STATES).double()  # (B, states, T)
    noise = kept * same + (1 - kept) / SYMBOLS
    others = torch.stack(
        [noise[..., [j for j in range(LENGTH) if j != i]].prod(-1) for i in range(LENGTH)], -1
    )
    clean = torch.nn.functional.one_hot(STATES, SYMBOLS).double()
    joint = torch.einsum("s,bst,stk->btk", DATA, others, clean)
    return joint / joint.sum(-1, keepdim=True)


def reversed_noise(steps):
    """The exact distribution of texts after the reverse process with the exact posterior."""
    levels = torch.linspace(0, 1, steps + 1, dtype=torch.float64).tolist()
    shares = torch.full((len(STATES),), 1 / len(STATES), dtype=torch.float64)
    for kept, before in pairwise(levels):
        logits, noisy = leave_one_out(STATES, kept).log().flatten(0, 1), STATES.flatten()
        alpha = torch.full(noisy.shape, kept, dtype=torch.float64)
        denoised = MODEL_PREDICTIONS["mean_loo"].denoiser(logits, noisy, alpha).softmax(-1)
        step = step_posterior(denoised, noisy, kept, before).view(-1, LENGTH, SYMBOLS)
        moves = torch.stack([step[:, i, STATES[:, i]] for i in range(LENGTH)]).prod(0)
        shares = shares @ moves
    return shares


def test_the_reverse_process_with_the_exact_posterior_ends_in_the_data():
    """The distance is that of tokens drawn apart in each step, which falls as 1 / steps."""
    distances = [(reversed_noise(steps) - DATA).abs().sum() / 2 for steps in (16, 32, 64, 128)]
    for coarse, fine in pairwise(distances):
        assert fine.item() == pytest.approx(coarse.item() / 2, rel=0.2)
    assert distances[-1] < 0.005


@pytest.mark.parametrize("prediction", MODEL_PREDICTIONS)
def test_drawn_texts_are_those_of_the_chain(prediction, monkeypatch):
    """Of 20,000 texts 27 shares have a distance of 0.015 by chance, and 64 steps one of 0.005."""
    levels = iter(torch.linspace(0, 1, 65).tolist())

    def model(input_ids, attention_mask):
        assert attention_mask.all()
        kept = next(levels)
        places = (input_ids * PLACES).sum(1)
        logits = leave_one_out(STATES, kept)[places].log().flatten(0, 1)
        if prediction == "mean":
            alpha = torch.full((len(logits),), kept, dtype=torch.float64)
            denoiser = MODEL_PREDICTIONS["mean_loo"].denoiser
            logits = denoiser(logits, input_ids.flatten(), alpha)
        return SimpleNamespace(logits=logits.view(*input_ids.shape, SYMBOLS))

    model.device = torch.device("cpu")
    monkeypatch.setattr("core.diffusion.reverse_steps.symbol_count", lambda _: SYMBOLS)
    monkeypatch.setattr("core.diffusion.reverse_steps.TOKENS", 20_000 * LENGTH)  # all together
    ids = draw_texts(model, prediction, count=20_000, length=LENGTH, steps=64, seed=1)
    shares = (ids * PLACES).sum(1).bincount(minlength=len(STATES)).double() / len(ids)
    assert (shares - DATA).abs().sum() / 2 < 0.03


def test_a_chain_is_drawn_by_the_seed_and_all_its_symbols_are_equally_frequent():
    matrix = torch.tensor(chain(20), dtype=torch.float64)
    assert matrix.sum(0).tolist() == pytest.approx([1.0] * len(ALPHABET))
    assert matrix.sum(1).tolist() == pytest.approx([1.0] * len(ALPHABET))
    likely, second = matrix.topk(2).values.T
    assert likely.tolist() == pytest.approx([0.7125] * len(ALPHABET))
    assert second.tolist() == pytest.approx([0.2125] * len(ALPHABET))
    assert len({chain(seed) for seed in range(10)}) == 10


def test_texts_have_the_bigrams_of_their_chain_and_held_out_ones_are_others():
    """The shares of 64 bigrams of 20,000 texts are off by 0.006 in sum by chance."""
    source = find_set("nano-canvas").for_seed(20).source
    trained, held_out = ([r["text"] for r in source.rows("", s, None)] for s in ("train", "valid"))
    assert len(trained) == 20_000
    assert len(held_out) == 1_000
    assert trained[:1_000] != held_out
    pairs = [text[i : i + 2] for text in trained for i in range(SYMBOLS_OF_A_TEXT - 1)]
    off = [abs(pairs.count(p) / len(pairs) - c) for p, c in bigram_chances(20).items()]
    assert sum(off) / 2 < 0.01
    assert sum(bigram_chances(20).values()) == pytest.approx(1.0)


def test_the_distance_of_texts_is_the_total_variation_of_their_bigrams():
    draw = torch.Generator().manual_seed(3)
    drawn, held_out = ([torch.randint(4, (6,), generator=draw) for _ in range(n)] for n in (40, 60))
    shares = []
    for texts in (drawn, held_out):
        pairs = [tuple(text[i : i + 2].tolist()) for text in texts for i in range(5)]
        shares.append([pairs.count(p) / len(pairs) for p in product(range(4), repeat=2)])
    distance = bigram_distance(drawn, held_out, 4)
    assert distance.value == pytest.approx(
        sum(abs(a - b) for a, b in zip(*shares, strict=True)) / 2
    )
    assert distance.low < distance.value < distance.high
    assert distance.n == 40
    assert bigram_distance(drawn, drawn, 4).value == 0.0
    apart = bigram_distance([torch.zeros(5, dtype=torch.long)], [torch.ones(5).long()], 4)
    assert apart.value == 1.0


def test_an_encoder_is_drawn_by_its_seed_and_is_no_policy():
    same, again, other = (load_denoiser(f"nano-encoder-{seed}").state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(same[name], again[name]) for name in same)
    assert any(not torch.equal(same[name], other[name]) for name in same)
    with pytest.raises(BadValue, match="an encoder is no causal language model"):
        load_policy("nano-encoder-1")


def test_texts_are_drawn_in_parts_of_few_tokens(monkeypatch):
    model = nano_encoder(1).eval()
    monkeypatch.setattr("core.diffusion.reverse_steps.TOKENS", 40)
    sizes = list[int]()
    forward = model.forward

    def watched(**given):
        sizes.append(given["input_ids"].numel())
        return forward(**given)

    monkeypatch.setattr(model, "forward", watched)
    drawn = draw_texts(model, "mean", count=7, length=16, steps=3, seed=0)
    assert drawn.shape == (7, 16)
    assert max(sizes) == 32
    assert len({tuple(row) for row in drawn.tolist()}) == 7


def test_the_distance_of_texts_needs_no_table_of_all_pairs():
    few = [torch.tensor([3, 5, 5, 9]), torch.tensor([5, 9])]
    others = [torch.tensor([3, 5, 9, 9])]
    wide, narrow = (bigram_distance(few, others, symbols) for symbols in (150_000, 10))
    assert wide == narrow
    assert wide.value == pytest.approx(5 / 12)
