"""CPO, ORPO and TPO: any split of a step, what the likelihood covers, data, what is refused."""

import copy
from math import inf, isfinite, nan

import pytest
import torch
from datasets import Dataset
from tokenizers.processors import TemplateProcessing
from transformers import T5Config, T5ForConditionalGeneration

import core
from core.data.pairs import TRIPLE, tokenize_pairs
from core.errors import MissingColumn
from core.losses.reference_free import CPO_LOSSES, TPO_LOSSES
from eval.errors import BadValue

pytestmark = pytest.mark.versions

ROWS = [
    {"prompt": f"{a}+{b}=", "chosen": f"{a + b}", "rejected": f"{a * b + 9} is it"}
    for a in range(1, 6)
    for b in (3, 7)
]
ROWS = [{**row, "reference": f"{row['chosen']} or so" * (1 + i % 3)} for i, row in enumerate(ROWS)]
CLOSE = 1e-5
KINDS = {
    **{f"cpo {name}": ("CPO", {"loss_type": name}) for name in CPO_LOSSES},
    "simpo": ("CPO", {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 2.0}),
    "alphapo": ("CPO", {"loss_type": "alphapo", "alpha": 0.25, "beta": 2.0}),
    "orpo": ("ORPO", {"beta": 0.5}),
    **{f"tpo {name}": ("TPO", {"loss_type": name, "beta": 0.3}) for name in TPO_LOSSES},
}
ON_CPU = ("--use_cpu", "true", "--bf16", "false")
ONE_OF_EACH = ("cpo sigmoid", "orpo", "tpo tpo-l")


def config(method, folder, **changes):
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
    return getattr(core, f"{method}Config")(**{**settings, **changes})


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    def make(kind="cpo sigmoid", rows=ROWS, data=None, evaluation=None, tokenizer=None, **changes):
        method, settings = KINDS.get(kind, (kind, {}))
        return getattr(core, f"{method}Trainer")(
            model=build_llama(seed=1),
            args=config(method, tmp_path, **{**settings, **changes}),
            train_dataset=Dataset.from_list(rows) if data is None else data,
            eval_dataset=evaluation,
            processing_class=tokenizer or tiny_tokenizer,
        )

    return make


def weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def train(trainer):
    trainer.train()
    return [row for row in trainer.state.log_history if "loss" in row], weights(trainer)


def token_logps(model, prompt, answer):
    """Log-probabilities of an answer's tokens, without a batch."""
    ids = torch.tensor([[*prompt, *answer]])
    with torch.no_grad():
        logps = model(ids).logits.log_softmax(-1)
    return logps[0, :-1].gather(-1, ids[0, 1:, None])[len(prompt) - 1 :, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_ten_pairs_are_one_step_however_they_are_split(kind, build):
    """Windows of 4, 4 and 2 pairs, of which means of means would weigh the last two twice."""
    parts = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}
    (whole, one), (split, other) = (train(build(kind, **changes)) for changes in ({}, parts))
    start = weights(build(kind))
    assert (one - other).norm() < CLOSE * (one - start).norm()
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], rel=1e-4)
    assert 0 <= split[0]["rewards/accuracies"] <= 1


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_packed_rows_and_padded_ones_have_one_loss_and_one_gradient(kind, build, monkeypatch):
    packed, moved = train(build(kind))
    monkeypatch.setattr("core.forward.answers.can_pack", lambda *_: False)
    padded, other = train(build(kind))
    assert (moved - other).norm() < CLOSE * (moved - weights(build(kind))).norm()
    for name, value in padded[0].items():
        assert packed[0][name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_loss_and_metrics_are_those_of_each_text_alone(kind, build):
    """The likelihood is of chosen answers, of whole chosen texts, or of gold answers."""
    trainer = build(kind, learning_rate=0.0)
    (log,), _ = train(trainer)
    model, rows = trainer.model.eval(), list(trainer.train_dataset)
    texts = {
        name: [token_logps(model, r[f"{name}_prompt_ids"], r[f"{name}_ids"]) for r in rows]
        for name in trainer.answers
    }
    if kind == "orpo":
        pairs = [(r["chosen_prompt_ids"], r["chosen_ids"]) for r in rows]
        likely = [token_logps(model, p[:1], [*p[1:], *answer]) for p, answer in pairs]
    else:
        likely = texts["reference" if kind.startswith("tpo") else "chosen"]
    nll = -torch.cat(likely).mean().item()
    assert log["nll_loss"] == pytest.approx(nll, rel=1e-5)
    averages = trainer.args.loss.averages
    for name in ("chosen", "rejected"):
        logps = [x.mean() if averages else x.sum() for x in texts[name]]
        assert log[f"logps/{name}"] == pytest.approx(torch.stack(logps).mean().item(), rel=1e-5)
    beta = trainer.args.beta
    gaps = [a.mean() - b.mean() if averages else a.sum() - b.sum() for a, b in zip(
        texts["chosen"], texts["rejected"], strict=True
    )]  # fmt: skip
    assert log["rewards/margins"] == pytest.approx(beta * torch.stack(gaps).mean().item(), abs=1e-5)
    if kind != "orpo":
        margin = trainer.args.coefficients.margin if kind == "tpo tpo-l" else 0.0
        pair = -torch.nn.functional.logsigmoid(beta * torch.stack(gaps) - margin).mean().item()
        expected = pair + trainer.args.likelihood_weight * nll
        assert log["loss"] == pytest.approx(expected, rel=1e-4)
    else:
        expected = nll - beta * log["log_odds_ratio"]
        assert log["loss"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", ["CPO", "TPO"])
def test_active_pairs_are_those_whose_margin_a_hinge_still_asks_for(method, build):
    """The loss of pairs is 1 - margin on them and 0 on the others, so that it is 0 without any."""
    alpha = {f"{method.lower()}_alpha": 0.0}
    for beta, expected in ((1e-4, 1.0), (0.3, None), (1e4, None)):
        trainer = build(method, loss_type="hinge", beta=beta, learning_rate=0.0, **alpha)
        (log,), _ = train(trainer)
        model, rows = trainer.model.eval(), list(trainer.train_dataset)
        margins = [
            beta
            * sum(
                sign * token_logps(model, row[f"{name}_prompt_ids"], row[f"{name}_ids"]).sum()
                for name, sign in (("chosen", 1), ("rejected", -1))
            ).item()
            for row in rows
        ]
        share = sum(margin < 1 for margin in margins) / len(margins)
        assert log["active_pairs"] == pytest.approx(share)
        assert expected is None or share == expected
        losses = [max(0.0, 1 - margin) for margin in margins]
        assert log["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", ["cpo sigmoid", "simpo", "orpo", "tpo ipo"])
def test_losses_without_a_hinge_log_no_active_pairs(kind, build):
    (log,), _ = train(build(kind, learning_rate=0.0))
    assert "active_pairs" not in log


def test_tpo_without_gold_is_cpo_without_likelihood(build):
    """Gold answers are not read then, so that there may be none."""
    bare = [{name: row[name] for name in ("prompt", "chosen", "rejected")} for row in ROWS]
    settings = {"loss_type": "sigmoid", "beta": 0.3}
    (cpo,), moved = train(build("CPO", cpo_alpha=0.0, **settings))
    (tpo,), other = train(build("TPO", rows=bare, tpo_alpha=0.0, **settings))
    assert torch.equal(moved, other)
    assert cpo["loss"] == tpo["loss"]
    assert "nll_loss" not in tpo


@pytest.mark.parametrize("kind", ["simpo", "orpo", "tpo tpo-l"])
def test_a_prompt_that_fills_the_length_drops_its_pair_and_says_so(kind, build, caplog):
    """TRL's SimPO trains on a mean over no token: its weights become NaN."""
    rows = [*ROWS, {"prompt": "1" * 30, "chosen": "2", "rejected": "3", "reference": "4"}]
    trainer = build(kind, rows=rows, max_length=20)
    assert len(trainer.train_dataset) == len(ROWS)
    assert "1 of 11 pairs are dropped" in caplog.text
    logged, moved = train(trainer)
    assert isfinite(logged[0]["loss"])
    assert moved.isfinite().all()


def test_answers_have_no_beginning_of_a_text(tiny_tokenizer):
    """Of prompt, chosen, rejected and gold answer only the prompt has one."""
    tokenizer = copy.deepcopy(tiny_tokenizer)
    start = tokenizer.convert_tokens_to_ids("<user>")
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="<user> $A", special_tokens=[("<user>", start)]
    )
    (row,) = tokenize_pairs(Dataset.from_list(ROWS[:1]), tokenizer, answers=TRIPLE)
    for name in TRIPLE:
        counts = [row[f"{name}_{part}"].count(start) for part in ("prompt_ids", "ids")]
        assert counts == [1, 0]


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_answers_end_once_where_a_template_ends_in_a_newline(kind, build, tiny_tokenizer):
    """TRL's CPO and ORPO add an end token behind the newline."""
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.chat_template = tokenizer.chat_template.replace("<eos>", "<eos>\n")
    asked = {"role": "user", "content": "1+2="}
    turns = [
        {
            "prompt": [asked],
            **{name: [{"role": "assistant", "content": text}] for name, text in zip(
                TRIPLE, ("3", "4", "three"), strict=True
            )},
        }
    ]  # fmt: skip
    trainer = build(kind, rows=turns, tokenizer=tokenizer)
    for name in trainer.answers:
        ids = trainer.train_dataset[0][f"{name}_ids"]
        assert ids.count(tokenizer.eos_token_id) == 1
        assert tokenizer.decode(ids).endswith("<eos>\n")


def test_the_prompt_of_three_texts_is_what_the_pair_begins_with(tiny_tokenizer):
    row = {"chosen": "1+2= 3", "rejected": "1+2= 4", "reference": "1+2= three"}
    (encoded,) = tokenize_pairs(Dataset.from_list([row]), tiny_tokenizer, answers=TRIPLE)
    for name, text in zip(TRIPLE, (" 3", " 4", " three"), strict=True):
        assert tiny_tokenizer.decode(encoded[f"{name}_prompt_ids"]) == "1+2="
        assert tiny_tokenizer.decode(encoded[f"{name}_ids"]) == f"{text}<eos>"
    other = Dataset.from_list([{**row, "reference": "2+1= 3"}])
    with pytest.raises(BadValue, match="reference='2\\+1= 3' does not begin with '1\\+2='"):
        tokenize_pairs(other, tiny_tokenizer, answers=TRIPLE)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_the_held_out_loss_does_not_depend_on_the_batch(kind, build):
    held_out = Dataset.from_list(ROWS[:7])
    logs = [
        build(kind, evaluation=held_out, per_device_eval_batch_size=size).evaluate()
        for size in (1, 3, 7)
    ]
    for name in ("eval_loss", "eval_nll_loss", "eval_rewards/margins", "eval_logps/chosen"):
        assert logs[0][name] == pytest.approx(logs[2][name], abs=1e-5), name
        assert logs[1][name] == pytest.approx(logs[2][name], abs=1e-5), name
    trained = build(kind, rows=ROWS[:7], learning_rate=0.0)
    (row,), _ = train(trained)
    assert logs[0]["eval_loss"] == pytest.approx(row["loss"], rel=1e-5)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_resumed_run_is_the_same_run(kind, build, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    settings |= {"per_device_train_batch_size": 4, "optim": "adamw_torch"}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = build(kind, **settings)
        trainer.train(resume_from_checkpoint=start)
        names = ("step", "loss", "nll_loss", "rewards/margins", "num_tokens", "grad_norm")
        logged = [row for row in trainer.state.log_history if "loss" in row]
        runs.append(([[row.get(n) for n in names] for row in logged], weights(trainer).tolist()))
    assert runs[1] == runs[0]


def test_a_stream_of_triples_is_trained_on(build):
    stream = Dataset.from_list(ROWS).to_iterable_dataset()
    settings = {"per_device_train_batch_size": 5, "max_steps": 3}
    logged, moved = train(build("tpo sigmoid", data=stream, **settings))
    (first, *_), _ = train(build("tpo sigmoid", data=Dataset.from_list(ROWS[:5]), **settings))
    assert logged[0]["loss"] == pytest.approx(first["loss"], rel=1e-5)
    assert len(logged) == 3
    assert moved.isfinite().all()


def test_a_loss_of_ones_own_is_a_method(build_llama, tiny_tokenizer, tmp_path, build):
    class Doubled(core.CPOTrainer):
        def pair_losses(self, chosen, rejected):
            result = super().pair_losses(chosen, rejected)
            return type(result)(**{**vars(result), "losses": 2 * result.losses})

    doubled = Doubled(
        model=build_llama(seed=1),
        args=config("CPO", tmp_path, cpo_alpha=0.0),
        train_dataset=Dataset.from_list(ROWS),
        processing_class=tiny_tokenizer,
    )
    (row,), _ = train(doubled)
    (plain,), _ = train(build(cpo_alpha=0.0))
    assert row["loss"] == pytest.approx(2 * plain["loss"], rel=1e-5)
    with pytest.raises(BadValue, match="override pair_losses"):
        type("Old", (core.CPOTrainer,), {"cpo_loss": lambda *_: None})


def test_adapters_are_trained_without_a_reference(build_llama, tiny_tokenizer, tmp_path):
    from peft import LoraConfig

    trainer = core.ORPOTrainer(
        model=build_llama(seed=1),
        args=config("ORPO", tmp_path, max_steps=3),
        train_dataset=Dataset.from_list(ROWS),
        processing_class=tiny_tokenizer,
        peft_config=LoraConfig(r=4, target_modules=["q_proj", "v_proj"]),
    )
    logged, _ = train(trainer)
    assert trainer.ref_model is None
    assert logged[-1]["loss"] < logged[0]["loss"]


@pytest.mark.parametrize("kind", ONE_OF_EACH)
@pytest.mark.parametrize("number", [nan, inf])
def test_a_log_probability_that_is_not_finite_stops_with_its_row(kind, number, build):
    trainer = build(kind)
    with torch.no_grad():
        trainer.model.model.embed_tokens.weight[12] = number  # "7", of every second prompt
    with pytest.raises(
        BadValue, match=r"log-probability of .*\d<eos>' after .* nan under the policy"
    ):
        trainer.train()


def test_alphapo_is_simpo_without_likelihood(tmp_path):
    given = config("CPO", tmp_path, loss_type="alphapo", alpha=0.25)
    assert (given.loss_type, given.cpo_alpha) == ("simpo", 0.0)
    given.learning_rate = 1e-4
    given.settle()
    assert (given.loss_type, given.cpo_alpha, given.alpha) == ("simpo", 0.0, 0.25)
    (read,) = core.TrlParser(core.CPOConfig).parse_args_and_config(
        [*ON_CPU, "--output_dir", str(tmp_path), "--loss_type", "alphapo", "--alpha", "0.25"]
    )
    assert (read.loss_type, read.cpo_alpha, read.alpha) == ("simpo", 0.0, 0.25)


def test_simpo_keeps_the_likelihood_unless_its_weight_is_0(tmp_path):
    for weight in ({}, {"cpo_alpha": 1.0}, {"cpo_alpha": 0.0}, {"cpo_alpha": 0.3}):
        given = config("CPO", tmp_path, loss_type="simpo", **weight)
        assert given.likelihood_weight == weight.get("cpo_alpha", 1.0)


def test_a_weight_of_the_command_line_is_refused_beside_alphapo(tmp_path):
    words = [*ON_CPU, "--output_dir", str(tmp_path), "--loss_type", "alphapo", "--cpo_alpha", "1.0"]
    with pytest.raises(BadValue, match="which has no likelihood"):
        core.TrlParser(core.CPOConfig).parse_args_and_config(words)


@pytest.mark.parametrize(
    ("method", "changes", "line"),
    [
        ("CPO", {"loss_type": "sigmoyd"}, "expected one of 'sigmoid'"),
        ("CPO", {"beta": 0.0}, "expected a number above 0"),
        ("ORPO", {"beta": -0.1}, "expected a number above 0"),
        ("TPO", {"beta": float("nan")}, "expected a number"),
        ("CPO", {"label_smoothing": 0.5}, "expected less than 0.5"),
        ("TPO", {"label_smoothing": -0.1}, "expected at least 0"),
        ("CPO", {"loss_type": "hinge", "label_smoothing": 0.1}, "does not take it, only 'sigmoid'"),
        ("TPO", {"loss_type": "ipo", "label_smoothing": 0.1}, "does not take it, only 'sigmoid'"),
        ("CPO", {"simpo_gamma": 1.0}, "'sigmoid' does not take it, only 'simpo'"),
        ("TPO", {"tpo_l_gamma": 1.0}, "'sigmoid' does not take it, only 'tpo-l'"),
        ("CPO", {"alpha": 0.25}, "'sigmoid' does not take it, only 'ipo' or 'simpo'"),
        ("CPO", {"loss_type": "hinge", "alpha": 0.25}, "'hinge' does not take it"),
        ("CPO", {"loss_type": "alphapo", "cpo_alpha": 0.5}, "which has no likelihood"),
        (
            "CPO",
            {"loss_type": "alphapo", "cpo_alpha": float("1.0")},
            "cpo_alpha=1.0 with loss_type",
        ),
        ("CPO", {"cpo_alpha": -1.0}, "expected at least 0"),
        ("TPO", {"tpo_alpha": -1.0}, "expected at least 0"),
        ("CPO", {"max_length": 1}, "expected at least 2"),
        ("CPO", {"max_completion_length": 8}, "is not supported"),
        ("ORPO", {"generate_during_eval": True}, "is not supported"),
        ("ORPO", {"padding_value": 3}, "is not supported"),
        ("ORPO", {"is_encoder_decoder": True}, "expected one of None, False"),
        ("TPO", {"truncation_mode": "keep_middle"}, "expected one of 'keep_start'"),
        ("TPO", {"pad_to_multiple_of": 0}, "expected at least 1"),
        ("TPO", {"label_smoothing_factor": 0.1}, "is not supported"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(method, changes, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        config(method, tmp_path, **changes)


def test_data_and_arguments_that_cannot_be_trained_on_are_refused(
    build, build_llama, tiny_tokenizer, tmp_path
):
    with pytest.raises(BadValue, match="chosen and rejected are both '2'"):
        build(rows=[{"prompt": "1", "chosen": "2", "rejected": "2"}])
    with pytest.raises(MissingColumn, match="'reference'"):
        build("tpo sigmoid", rows=[{"prompt": "1", "chosen": "2", "rejected": "3"}])
    with pytest.raises(BadValue, match="give a model, or the name of one"):
        core.CPOTrainer(args=config("CPO", tmp_path), train_dataset=Dataset.from_list(ROWS))
    for name in ("model_init", "compute_metrics", "preprocess_logits_for_metrics"):
        with pytest.raises(BadValue, match=rf"{name}=...\) is not supported"):
            core.ORPOTrainer(build_llama(), **{name: print})
    with pytest.raises(TypeError, match="ref_model"):
        core.CPOTrainer(build_llama(), ref_model=build_llama())
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 64}
    both = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0))
    with pytest.raises(BadValue, match="is an encoder-decoder"):
        core.CPOTrainer(
            both, config("CPO", tmp_path), train_dataset=Dataset.from_list(ROWS),
            processing_class=tiny_tokenizer,
        )  # fmt: skip
    trainer = build()
    with pytest.raises(BadValue, match="computes no logits"):
        trainer.compute_loss(trainer.model, {}, return_outputs=True)
