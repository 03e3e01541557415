"""DPO: any split of a step, any kind of reference, data in every form, and what is refused."""

import copy
import re
from math import exp, inf, isfinite, log, nan

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from core import DPOConfig, DPOTrainer
from core.data.pairs import common_length, encode_answers, tokenize_pairs
from core.errors import MissingColumn
from core.forward.answers import answer_tokens
from core.losses.preference import PREFERENCES
from core.preference.answer_trainer import check_finite
from core.preference.trainer import tokens_of
from eval.errors import BadValue

pytestmark = pytest.mark.versions

ROWS = [
    {"prompt": f"{a}+{b}=", "chosen": f"{a + b}", "rejected": f"{a * b + 9} is it"}
    for a in range(1, 6)
    for b in (3, 7)
]
CLOSE = 1e-5


def config(folder, **changes):
    settings = {
        "output_dir": str(folder),
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
    return DPOConfig(**{**settings, **changes})


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    def make(
        rows=ROWS, model=None, reference=None, data=None, peft=None, evaluation=None, **changes
    ):
        return DPOTrainer(
            model=build_llama(seed=1) if model is None else model,
            ref_model=reference,
            args=config(tmp_path, **changes),
            train_dataset=Dataset.from_list(rows) if data is None else data,
            eval_dataset=evaluation,
            processing_class=tiny_tokenizer,
            peft_config=peft,
        )

    return make


def weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def logs(trainer):
    return [row for row in trainer.state.log_history if "loss" in row]


def train(trainer):
    trainer.train()
    return logs(trainer), weights(trainer)


@pytest.mark.parametrize("loss_type", PREFERENCES)
def test_ten_pairs_are_one_step_however_they_are_split(loss_type, build, build_llama):
    """Windows of 4, 4 and 2 pairs: a mean of means would weigh the last two twice."""
    scope = {} if PREFERENCES[loss_type].splits else {"batch_scope": "step"}
    smoothing = {"label_smoothing": 0.1} if PREFERENCES[loss_type].parameters[:1] else {}
    smoothing = smoothing if "label_smoothing" in PREFERENCES[loss_type].parameters else {}
    rated = [{**row, "chosen_win_rate": 0.9, "rejected_win_rate": 0.3} for row in ROWS]
    rows = rated if PREFERENCES[loss_type].needs_wins else ROWS
    other = build_llama(seed=2)
    parts = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3, **scope}
    (whole, one), (split, other_weights) = (
        train(build(rows, None, copy.deepcopy(other), loss_type=loss_type, **smoothing, **changes))
        for changes in ({}, parts)
    )
    start = weights(build())
    assert (one - other_weights).norm() < CLOSE * (one - start).norm()
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], rel=1e-4)
    assert 0 <= split[0]["rewards/accuracies"] <= 1


MIXED = {"loss_type": ["sigmoid", "aot", "sft"], "loss_weights": [1.0, 0.5, 0.2], "ld_alpha": 0.3}


@pytest.mark.parametrize("beforehand", [False, True])
def test_a_mix_with_losses_of_several_pairs_is_one_step_too(beforehand, build, build_llama):
    """Micro-batches alone give another update, so the test sees the scope."""
    other = build_llama(seed=2)
    parts = {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 4}
    changes = {"precompute_ref_log_probs": beforehand, **MIXED}
    (whole, one), (split, same), (_, apart) = (
        train(build(ROWS, None, copy.deepcopy(other), **changes, **batches))
        for batches in ({}, {**parts, "batch_scope": "step"}, parts)
    )
    moved = (one - weights(build())).norm()
    assert (one - same).norm() < CLOSE * moved
    assert (one - apart).norm() > 100 * CLOSE * moved
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], rel=1e-4)


@pytest.mark.parametrize("loss_type", ["aot", "aot_unpaired", "sft"])
def test_the_held_out_loss_of_several_pairs_is_that_of_all(loss_type, build, build_llama):
    def held_out(**changes):
        other, data = build_llama(seed=2), Dataset.from_list(ROWS)
        trainer = build(reference=other, evaluation=data, loss_type=loss_type, **changes)
        return trainer.evaluate()["eval_loss"]

    whole = held_out(per_device_eval_batch_size=10)
    for size in (2, 4):
        changes = {"per_device_eval_batch_size": size, "batch_scope": "step"}
        assert held_out(**changes) == pytest.approx(whole, rel=1e-5)
    assert held_out(per_device_eval_batch_size=2) != pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (ROWS, "chosen_win_rate"),
        ([{**row, "chosen_win_rate": 1.5, "rejected_win_rate": 0.0} for row in ROWS], "is 1.5"),
        ([{**row, "chosen_win_rate": 1.0, "rejected_win_rate": None} for row in ROWS], "is None"),
    ],
)
def test_win_rates_that_are_missing_or_no_shares_are_refused(rows, told, build):
    with pytest.raises((BadValue, MissingColumn), match=told):
        build(rows, loss_type="sppo")


def test_the_first_loss_is_that_of_a_coin_and_a_step_raises_the_margin(build):
    trainer = build(max_steps=6)
    rows, _ = train(trainer)
    assert rows[0]["loss"] == pytest.approx(log(2), abs=1e-6)
    assert rows[0]["rewards/margins"] == pytest.approx(0, abs=1e-6)
    assert rows[-1]["rewards/margins"] > 0.1
    assert rows[-1]["logps/chosen"] > rows[-1]["logps/rejected"]


@pytest.mark.parametrize("number", [nan, inf])
@pytest.mark.parametrize("place", ["policy", "reference"])
def test_a_log_probability_that_is_not_finite_stops_with_its_row(place, number, build, build_llama):
    broken = build_llama(seed=2)
    with torch.no_grad():
        broken.model.embed_tokens.weight[12] = number  # "7", of every second prompt
    model, reference = build_llama(seed=1), build_llama(seed=2)
    trainer = build(
        model=broken if place == "policy" else model,
        reference=broken if place == "reference" else reference,
    )
    with pytest.raises(BadValue, match=rf"of '\d+<eos>' after '\d\+\d=': nan under the {place}"):
        trainer.train()


@pytest.mark.parametrize("place", range(20))
def test_the_first_log_probability_that_is_not_finite_is_named(place, build):
    trainer = build()
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(10)])
    logps = torch.zeros(20)
    check_finite(logps, batch, trainer.tokenizer, "policy")
    logps[place:] = -inf
    row = ROWS[place % 10]
    answer = row["chosen" if place < 10 else "rejected"]
    named = rf"log-probability of '{answer}<eos>' after '{re.escape(row['prompt'])}': -inf"
    with pytest.raises(BadValue, match=named):
        check_finite(logps, batch, trainer.tokenizer, "policy")


def test_a_model_that_diverges_stops_at_the_next_step(build):
    trainer = build(max_steps=4)
    trainer.args.learning_rate = inf
    with pytest.raises(BadValue, match="lower learning_rate"):
        trainer.train()
    assert trainer.state.global_step == 1


def test_packed_rows_and_padded_ones_have_one_loss_and_one_gradient(build, monkeypatch):
    packed, moved = train(build(use_weighting=True))
    monkeypatch.setattr("core.forward.answers.can_pack", lambda *_: False)
    padded, other = train(build(use_weighting=True))
    # one rounding of a weight of 0.03 is already 1e-5 of the move
    assert (moved - other).norm() < 10 * CLOSE * (moved - weights(build())).norm()
    for name, value in padded[0].items():
        assert packed[0][name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("alignment", ["sampled", "greedy", "none"])
@pytest.mark.parametrize("side", ["both", "chosen", "rejected"])
def test_the_logged_weight_is_that_of_the_loss(side, alignment, build):
    """Where policy and reference agree each pair loses log 2 times its weight."""
    ways = {"weighting_side": side, "weighting_alignment": alignment}
    trainer = build(use_weighting=True, **ways, per_device_train_batch_size=1)
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(len(ROWS))])
    tokens = answer_tokens(trainer.model, tokens_of(batch), alignment=alignment)
    mask = batch["completion_mask"]
    means = ((tokens.logps - tokens.alignment) * mask).sum(1) / mask.sum(1)
    chosen, rejected = means.detach().chunk(2)
    stated = {"both": chosen + rejected, "chosen": chosen, "rejected": rejected}[side]
    [row] = train(trainer)[0]
    assert any(row["weights/log_mean"] == pytest.approx(x, abs=1e-4) for x in stated.tolist())
    assert row["loss"] == pytest.approx(log(2) * exp(row["weights/log_mean"]), rel=1e-4)
    low = 0.5 * exp(row["weights/log_mean"])
    limited = build(use_weighting=True, **ways, per_device_train_batch_size=1, weighting_clamp=low)
    assert train(limited)[0][0]["loss"] == pytest.approx(log(2) * low, rel=1e-4)


@pytest.mark.parametrize("changes", [{}, {"ld_alpha": 0.5}, {"loss_type": "aot"}])
def test_a_reference_that_is_computed_beforehand_changes_nothing(changes, build, build_llama):
    held_out = Dataset.from_list(ROWS[:4])
    results = []
    for beforehand in (False, True):
        trainer = build(
            reference=build_llama(seed=2),
            evaluation=held_out,
            precompute_ref_log_probs=beforehand,
            max_steps=3,
            **changes,
        )
        rows, moved = train(trainer)
        own, fresh = trainer.evaluate(), trainer.evaluate(held_out)
        for name in ("eval_loss", "eval_rewards/margins"):
            assert own[name] == pytest.approx(fresh[name], abs=1e-6)
        results.append((moved, rows[-1]["rewards/margins"], own["eval_rewards/margins"]))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-6)
    assert results[0][1:] == pytest.approx(results[1][1:], abs=1e-5)


def test_a_trained_adapter_is_its_own_reference_and_new_ones_are_off_in_it(build):
    from peft import LoraConfig

    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    fresh = build(peft=lora)
    rows, _ = train(fresh)
    assert abs(rows[0]["loss"] - log(2)) > 1e-3  # such adapters begin with a change
    trained = build(model=fresh.model)
    rows, _ = train(trained)
    assert rows[0]["loss"] == pytest.approx(log(2), abs=1e-6)


def test_a_moving_reference_follows_the_policy(build):
    trainer = build(
        sync_ref_model=True, ref_model_sync_steps=1, ref_model_mixup_alpha=1.0, max_steps=3
    )
    rows, _ = train(trainer)
    assert [row["rewards/margins"] for row in rows] == pytest.approx([0, 0, 0], abs=1e-5)


@pytest.mark.parametrize("beforehand", [False, True])
def test_a_resumed_run_is_the_same_run(beforehand, build, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    settings |= {"per_device_train_batch_size": 4, "optim": "adamw_torch"}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = build(precompute_ref_log_probs=beforehand, **settings)
        trainer.train(resume_from_checkpoint=start)
        names = ("step", "loss", "rewards/margins", "num_tokens", "entropy", "grad_norm")
        rows = [[row.get(name) for name in names] for row in logs(trainer)]
        runs.append((rows, weights(trainer).tolist()))
    assert runs[1] == runs[0]


def test_a_stream_is_trained_on_like_its_rows(build):
    stream = Dataset.from_list(ROWS).to_iterable_dataset()
    streamed, _ = train(build(data=stream, per_device_train_batch_size=5, max_steps=3))
    assert [isfinite(row["loss"]) for row in streamed] == [True] * 3
    with pytest.raises(BadValue, match="cannot be read beforehand"):
        build(data=stream, precompute_ref_log_probs=True)
    with pytest.raises(BadValue, match="set max_steps"):
        build(data=stream, max_steps=-1)


def test_the_held_out_loss_does_not_depend_on_the_batch(build):
    held_out = Dataset.from_list(ROWS[:7])
    losses = [
        build(evaluation=held_out, per_device_eval_batch_size=size, beta=0.7).evaluate()
        for size in (1, 3, 7)
    ]
    for name in ("eval_loss", "eval_rewards/margins", "eval_logps/chosen", "eval_entropy"):
        assert losses[0][name] == pytest.approx(losses[2][name], abs=1e-5), name
        assert losses[1][name] == pytest.approx(losses[2][name], abs=1e-5), name


def test_experts_add_their_load_balancing_loss(build, tiny_tokenizer):
    from transformers import MixtralConfig, MixtralForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 2}
    torch.manual_seed(3)
    experts = MixtralForCausalLM(
        MixtralConfig(
            vocab_size=len(tiny_tokenizer), output_router_logits=True, pad_token_id=0,
            **sizes, **heads,
        )
    )  # fmt: skip
    (plain,), (weighed,) = (
        train(build(model=copy.deepcopy(experts), router_aux_loss_coef=weight))[0]
        for weight in (0.0, 0.5)
    )
    assert weighed["loss"] - plain["loss"] == pytest.approx(0.5 * weighed["aux_loss"], rel=1e-4)
    assert "aux_loss" not in plain


def test_answers_have_no_beginning_of_a_text(tiny_tokenizer):
    """Of `prompt`, `chosen`, `rejected` only the prompt has what a tokenizer begins with."""
    tokenizer = copy.deepcopy(tiny_tokenizer)
    from tokenizers.processors import TemplateProcessing

    start = tokenizer.convert_tokens_to_ids("<user>")
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="<user> $A", special_tokens=[("<user>", start)]
    )
    (row,) = tokenize_pairs(Dataset.from_list(ROWS[:1]), tokenizer)
    for name in ("chosen", "rejected"):
        assert row[f"{name}_prompt_ids"].count(start) == 1
        assert row[f"{name}_ids"].count(start) == 0
        assert row[f"{name}_ids"][-1] == tokenizer.eos_token_id


def test_the_prompt_of_two_texts_is_what_they_begin_with(tiny_tokenizer):
    (row,) = tokenize_pairs(
        Dataset.from_list([{"chosen": "1+2= 3", "rejected": "1+2= 4"}]), tiny_tokenizer
    )
    assert tiny_tokenizer.decode(row["chosen_prompt_ids"]) == "1+2="
    assert tiny_tokenizer.decode(row["chosen_ids"]) == " 3<eos>"


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_the_common_beginning_is_the_longest_one(one, other):
    n = common_length(one, other)
    assert one[:n] == other[:n]
    assert n in (len(one), len(other)) or one[n] != other[n]


@pytest.mark.parametrize("kept", ["keep_start", "keep_end"])
@given(length=st.integers(2, 24))
def test_long_pairs_are_cut_to_the_length_at_one_end(kept, length, tiny_tokenizer):
    whole = encode_answers(ROWS[0], tiny_tokenizer, None, kept)
    short = encode_answers(ROWS[0], tiny_tokenizer, length, kept)
    for name in ("chosen", "rejected"):
        both, cut = ([*row[f"{name}_prompt_ids"], *row[f"{name}_ids"]] for row in (whole, short))
        assert cut == (both[:length] if kept == "keep_start" else both[-length:])


def test_a_prompt_that_fills_the_length_drops_its_pair_and_says_so(build, caplog):
    """TRL's SimPO trained on a mean over no token: NaN."""
    rows = [*ROWS, {"prompt": "1" * 30, "chosen": "2", "rejected": "3"}]
    trainer = build(rows=rows, max_length=20)
    assert len(trainer.train_dataset) == len(ROWS)
    assert "1 of 11 pairs are dropped" in caplog.text
    rows, moved = train(trainer)
    assert isfinite(rows[0]["loss"])
    assert moved.isfinite().all()


@pytest.mark.parametrize("can_pack", [True, False])
@pytest.mark.parametrize("alignment", ["sampled", "greedy", "none"])
def test_token_statistics_are_those_of_the_model(build, alignment, can_pack, monkeypatch):
    if not can_pack:
        monkeypatch.setattr("core.forward.answers.can_pack", lambda *_: False)
    trainer = build()
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(3)])
    tokens = answer_tokens(trainer.model, tokens_of(batch), alignment=alignment)
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    for place in range(6):
        row = ids[place][mask[place].bool()]
        n = int(batch["completion_mask"][place].sum())
        with torch.no_grad():
            logits = trainer.model(row[None]).logits[0, -n - 1 : -1]
        chances = logits.softmax(-1)
        expected = {
            "logps": chances.log().gather(-1, row[-n:, None])[:, 0],
            "entropy": -(chances * chances.log()).sum(-1),
            "right": (logits.argmax(-1) == row[-n:]).float(),
            "mean_logits": logits.mean(-1),
            "alignment": {
                "sampled": chances.square().sum(-1).log(),
                "greedy": chances.max(-1).values.log(),
                "none": torch.zeros(n),
            }[alignment],
        }
        for name, values in expected.items():
            found = getattr(tokens, name)[place]
            assert torch.allclose(found[:n], values, atol=1e-4), name
            assert not found[n:].any()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"loss_type": "sigmoyd"}, "expected one of 'sigmoid'"),
        ({"loss_type": []}, "expected at least one loss"),
        ({"beta": 0.0}, "expected a number above 0"),
        ({"loss_weights": [1.0, 2.0]}, "`loss_weights` must have the same length"),
        ({"label_smoothing": 0.1}, "has no effect with loss_type='sigmoid'"),
        ({"loss_type": "robust", "label_smoothing": 0.5}, "expected less than 0.5"),
        ({"loss_type": "exo_pair"}, "Label smoothing must be greater than 0.0"),
        ({"discopop_tau": 0.1}, "has no effect"),
        ({"f_alpha_divergence_coef": 0.7}, "has no effect"),
        ({"loss_type": "nca_pair", "f_divergence_type": "forward_kl"}, "does not cancel"),
        ({"f_divergence_type": "kl"}, "expected one of"),
        ({"loss_type": "aot", "use_weighting": True}, "no loss of single pairs"),
        ({"weighting_alignment": "greedy"}, "no effect without use_weighting"),
        ({"weighting_side": "chosen"}, "no effect without use_weighting"),
        ({"weighting_clamp": 1.0}, "no effect without use_weighting"),
        ({"use_weighting": True, "weighting_side": "left"}, "expected one of"),
        ({"use_weighting": True, "weighting_clamp": 0.0}, "expected a number above 0"),
        (
            {"use_weighting": True, "weighting_clamp": 1.0, "weighting_alignment": "none"},
            "whose weights are at most 1",
        ),
        ({"ld_alpha": -0.1}, "expected at least 0"),
        ({"sync_ref_model": True, "precompute_ref_log_probs": True}, "You cannot use"),
        ({"ref_model_sync_steps": 5}, "the reference does not move"),
        ({"precompute_ref_batch_size": 5}, "nothing is computed beforehand"),
        ({"padding_free": True}, "is not supported"),
        ({"max_length": 1}, "expected at least 2"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        config(tmp_path, **changes)


def test_a_reference_that_is_no_model_is_refused(build):
    with pytest.raises(BadValue, match="ref_model='reference': expected a model: load it"):
        build(reference="reference")


def test_data_and_arguments_that_cannot_be_trained_on_are_refused(build, build_llama):
    same = [{"prompt": "1", "chosen": "2", "rejected": "2"}]
    with pytest.raises(BadValue, match="rejected are both '2' after the prompt '1': expected two"):
        build(rows=same)
    turns = [[{"role": "user", "content": text}] for text in ("1", "2")]
    with pytest.raises(BadValue, match=r"'1'}] and .*'2'}]: expected one prompt, or a column"):
        build(rows=[dict(zip(("chosen", "rejected"), turns, strict=True))])
    with pytest.raises(MissingColumn, match="rejected"):
        build(rows=[{"prompt": "1", "chosen": "2"}])
    with pytest.raises(BadValue, match="no pair of the dataset has two answers within"):
        build(max_length=2)
    model = build_llama()
    with pytest.raises(BadValue, match="cannot be the same object"):
        build(model=model, reference=model)
    trainer = build()
    with pytest.raises(BadValue, match="computes no logits"):
        trainer.compute_loss(trainer.model, {}, return_outputs=True)


def test_a_loss_of_ones_own_is_a_method(build_llama, tiny_tokenizer, tmp_path):
    class Doubled(DPOTrainer):
        def pair_losses(self, pairs):
            result = super().pair_losses(pairs)
            return type(result)(losses=2 * result.losses, scores=result.scores)

    trainer = Doubled(
        model=build_llama(),
        args=config(tmp_path),
        train_dataset=Dataset.from_list(ROWS),
        processing_class=tiny_tokenizer,
    )
    trainer.train()
    assert exp(logs(trainer)[0]["loss"]) == pytest.approx(4, rel=1e-5)
