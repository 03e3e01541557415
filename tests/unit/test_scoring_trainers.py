"""Reward models and models of steps: any split of a step, padding, data, adapters, refusals."""

import copy
from math import inf, isfinite, nan

import pytest
import torch
from datasets import Dataset
from peft import AutoPeftModelForSequenceClassification, LoraConfig
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
)

import core
from core.collect.reward_model import RewardModel
from core.collect.reward_sources import reward_model
from core.errors import MissingColumn
from core.forward.batches import pad_rows
from core.forward.head_scores import end_scores, token_scores
from eval.errors import BadValue

pytestmark = pytest.mark.versions

PAIRS = [
    {"prompt": f"{a}+{b}=", "chosen": f"{a + b}", "rejected": f"{a * b + 9} is it"}
    for a in range(1, 6)
    for b in (3, 7)
]
SOLUTIONS = [
    {
        "prompt": f"{a}+{b}?",
        "completions": [f"{a} and {b}", f"so {a + b + b % 2}", "done"][: 1 + a % 3],
        "labels": [True, b % 2 == 0, b % 2 == 0][: 1 + a % 3],
    }
    for a in range(1, 6)
    for b in (3, 4)
]
ANSWERS = [
    {"prompt": f"{a}+{b}=", "completion": f"{a + b + b % 2}", "label": b % 2 == 0}
    for a in range(1, 6)
    for b in (3, 14)
]
ROWS = {"Reward": PAIRS, "PRM": SOLUTIONS, "Verifier": ANSWERS}
LABELS = {"Reward": 1, "PRM": 2, "Verifier": 1}
CLASSES = {"Reward": "Sequence", "PRM": "Token", "Verifier": "Token"}
METHODS = tuple(ROWS)
CLOSE = 1e-5
CHANGES = {
    "reward": ("Reward", {}),
    "centred": ("Reward", {"center_rewards_coefficient": 0.3}),
    "prm": ("PRM", {}),
    "last step": ("PRM", {"train_on_last_step_only": True}),
    "verifier": ("Verifier", {}),
    "values alone": ("Verifier", {"lm_coef": 0.0}),
}


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


def classifier(llama, method="Reward"):
    """A classifier whose body has the weights of a language model."""
    kinds = {
        "Sequence": AutoModelForSequenceClassification,
        "Token": AutoModelForTokenClassification,
    }
    settings = copy.deepcopy(llama.config)
    settings.num_labels = LABELS[method]
    torch.manual_seed(7)
    made = kinds[CLASSES[method]].from_config(settings)
    made.model.load_state_dict(llama.model.state_dict())
    return made


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    def make(
        method="Reward", rows=None, data=None, evaluation=None, model=None, peft=None,
        tokenizer=None, **changes,
    ):  # fmt: skip
        return getattr(core, f"{method}Trainer")(
            model=model or classifier(build_llama(seed=1), method),
            args=config(method, tmp_path, **changes),
            train_dataset=Dataset.from_list(rows or ROWS[method]) if data is None else data,
            eval_dataset=evaluation,
            processing_class=copy.deepcopy(tokenizer or tiny_tokenizer),
            peft_config=peft,
        )

    return make


def weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def train(trainer):
    trainer.train()
    return [row for row in trainer.state.log_history if "loss" in row], weights(trainer)


@pytest.mark.parametrize("kind", CHANGES)
def test_ten_rows_are_one_step_however_they_are_split(kind, build):
    """Windows of 4, 4 and 2 rows, of which means of means would weigh the last two twice."""
    method, settings = CHANGES[kind]
    parts = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 3}
    (whole, one), (split, other) = (
        train(build(method, **settings, **changes)) for changes in ({}, parts)
    )
    start = weights(build(method))
    assert (one - start).norm() > 1e-4
    assert (one - other).norm() < CLOSE * (one - start).norm()
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], rel=1e-4)
    assert split[0]["num_tokens"] == whole[0]["num_tokens"]


@pytest.mark.parametrize("kind", CHANGES)
def test_packed_rows_and_padded_ones_have_one_loss_and_one_gradient(kind, build, monkeypatch):
    method, settings = CHANGES[kind]
    packed, moved = train(build(method, **settings))
    for module in ("head_scores", "documents"):
        monkeypatch.setattr(f"core.forward.{module}.goes_by_segments", lambda _: False)
    padded, other = train(build(method, **settings))
    assert (moved - other).norm() < CLOSE * (moved - weights(build(method))).norm()
    for name, value in padded[0].items():
        assert packed[0][name] == pytest.approx(value, abs=1e-5), name


def hidden_rewards(model, rows):
    """Rewards by the definition: the head at the last token of each row alone."""
    with torch.no_grad():
        states = [model.model(torch.tensor([row])).last_hidden_state[0, -1] for row in rows]
        return model.score(torch.stack(states))[:, 0]


@pytest.mark.parametrize("padding", [0, 1])
def test_a_reward_is_read_at_the_end_token_also_if_that_pads(padding, build_llama):
    """Alone, padded on the left or on the right, and beside a row with the same beginning."""
    model = classifier(build_llama(seed=1)).eval()
    model.config.pad_token_id = padding
    rows = [[7, 8, 9, 1], [7, 8, 5, 5, 5, 1], [9, 1], [7, 8, 9, 4, 1], [7, 8, 9, 4]]
    expected = hidden_rewards(model, rows)
    sides = [pad_rows(rows, padding, left=left) for left in (False, True)]
    with torch.no_grad():
        found = [end_scores(model, *side)[:, 0] for side in sides]
        for groups in ([(0, 3, 4), (1,), (2,)], [(3, 4), (0, 1), (2,)]):  # one is within another
            found += [end_scores(model, *sides[0], groups=groups)[:, 0]]
        alone = [torch.tensor([row]) for row in rows]
        found += [torch.cat([end_scores(model, x, torch.ones_like(x)) for x in alone])[:, 0]]
        their = model(input_ids=sides[0][0], attention_mask=sides[0][1]).logits[:, 0]
    for rewards in found:
        torch.testing.assert_close(rewards, expected, rtol=0, atol=1e-5)
    assert padding == 0 or (their - expected)[:4].abs().min() > 1e-3  # one token early


def test_a_reward_model_as_a_reward_reads_the_end_token(build_llama, tiny_tokenizer):
    """Of a chat, whose template ends in the token that pads here."""
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.pad_token = tokenizer.eos_token
    model = classifier(build_llama(seed=1)).eval()
    model.config.pad_token_id = tokenizer.pad_token_id
    prompts = [[{"role": "user", "content": text}] for text in ("1+2", "12+34")]
    said = [[{"role": "assistant", "content": text}] for text in ("3", "46 is it")]
    found = RewardModel(model, tokenizer, {})(prompts=prompts, completions=said)
    texts = ["<user>1+2<assistant>3<eos>", "<user>12+34<assistant>46 is it<eos>"]
    expected = hidden_rewards(model, [tokenizer(text).input_ids for text in texts])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_learned_positions_do_not_move_with_padding():
    """The row is read from its first position, which GPT-2 has no rotation for."""
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 64, "n_positions": 32}
    model = GPT2ForSequenceClassification(
        GPT2Config(**sizes, num_labels=1, pad_token_id=0, initializer_range=0.5)
    ).eval()
    rows = [[7, 8, 9, 1], [9, 1]]
    with torch.no_grad():
        one, other = (end_scores(model, *pad_rows(rows, 0, left=left)) for left in (False, True))
        alone = [model(torch.tensor([row])).logits for row in rows]
    torch.testing.assert_close(one, torch.cat(alone), rtol=0, atol=1e-5)
    torch.testing.assert_close(other, one, rtol=0, atol=1e-5)


def test_steps_are_scored_as_each_solution_alone(build_llama):
    """Also of one length, and padded on either side."""
    model = classifier(build_llama(seed=1), "PRM").eval()
    for rows in ([[7, 8, 9, 1], [7, 8, 5, 5, 5, 1], [9, 1]], [[7, 8, 9], [7, 5, 1]]):
        with torch.no_grad():
            sides = [token_scores(model, *pad_rows(rows, 0, left=left)) for left in (False, True)]
            expected = torch.cat([model(torch.tensor([row])).logits[0] for row in rows])
        for found in sides:
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_loss_and_metrics_are_those_of_each_pair_alone(build):
    rows = [{**row, "margin": place / 4} for place, row in enumerate(PAIRS)]
    trainer = build(rows=rows, learning_rate=0.0, center_rewards_coefficient=0.5)
    (log,), _ = train(trainer)
    data = trainer.train_dataset
    chosen, rejected = (
        hidden_rewards(trainer.model.eval(), data[f"{name}_ids"]) for name in ("chosen", "rejected")
    )
    gaps = chosen - rejected
    losses = (1 + (torch.tensor(data["margin"]) - gaps).exp()).log()
    losses += 0.5 * (chosen + rejected) ** 2
    every = torch.cat([chosen, rejected])
    expected = {
        "loss": losses.mean(),
        "margin": gaps.mean(),
        "accuracy": (gaps > 0).float().mean(),
        "min_reward": every.min(),
        "mean_reward": every.mean(),
        "max_reward": every.max(),
        "num_tokens": sum(map(len, [*data["chosen_ids"], *data["rejected_ids"]])),
    }
    for name, value in expected.items():
        assert log[name] == pytest.approx(float(value), rel=1e-4), name
    text = trainer.processing_class.decode(data[3]["rejected_ids"])
    assert text == "2+7=23 is it<eos>"


def test_a_column_of_zeros_trains_as_no_margin(build):
    zeros = [{**row, "margin": 0.0} for row in PAIRS]
    (_, one), (_, other) = (train(build(rows=rows, max_steps=3)) for rows in (PAIRS, zeros))
    assert torch.equal(one, other)


@pytest.mark.parametrize("coefficient", [0.0, 0.7])
def test_the_loss_of_a_verifier_is_that_of_each_solution_alone(coefficient, build):
    trainer = build("Verifier", learning_rate=0.0, lm_coef=coefficient)
    (log,), _ = train(trainer)
    model, errors, likelihoods, hits = trainer.model.eval(), [], [], []
    for row in trainer.train_dataset:
        ids, labels = (torch.tensor(row[name]) for name in ("input_ids", "labels"))
        with torch.no_grad():
            states = model.model(ids[None]).last_hidden_state[0]
        values = model.score(states)[:, 0]
        logps = (states @ model.model.embed_tokens.weight.T).log_softmax(-1)
        for place in (labels != -100).nonzero()[:, 0].tolist():
            errors.append((values[place] - labels[place]) ** 2)
            likelihoods.append(-logps[place - 1, ids[place]])
            hits.append((values[place] >= 0.5) == labels[place])
    error, nll = (torch.stack(parts).mean().item() for parts in (errors, likelihoods))
    assert log["loss"] == pytest.approx(error + coefficient * nll, rel=1e-4)
    assert log["value_loss"] == pytest.approx(error, rel=1e-4)
    assert log["accuracy"] == pytest.approx(torch.stack(hits).float().mean().item())
    assert ("lm_loss" in log) == (coefficient > 0)
    if coefficient:
        assert log["lm_loss"] == pytest.approx(nll, rel=1e-4)


def test_each_token_of_a_solution_has_its_label_and_the_prompt_none(build):
    rows = [{**ANSWERS[0], "completion": "34", "label": label} for label in (True, False)]
    trainer = build("Verifier", rows=rows)
    tokenizer = trainer.processing_class
    for row, label in zip(trainer.train_dataset, (1, 0), strict=True):
        assert tokenizer.decode(row["input_ids"]) == "1+3=34<eos>"
        assert row["labels"] == [-100] * 4 + [label] * 3
        assert all(type(value) is int for value in row["labels"])
    cut = build("Verifier", rows=rows, max_length=5).train_dataset
    assert cut["labels"] == [[-100] * 4 + [1], [-100] * 4 + [0]]
    turns = [
        {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "completion": [{"role": "assistant", "content": row["completion"]}],
            "label": row["label"],
        }
        for row in rows
    ]
    chat = build("Verifier", rows=turns).train_dataset
    assert tokenizer.decode(chat[0]["input_ids"]) == "<user>1+3=<assistant>34<eos>"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"label": 2}, "row 0 of the dataset: label 2 of a solution, expected True or False"),
        ({"label": None}, "row 0 of the dataset: label None of a solution"),
        ({"prompt": ""}, "row 0 of the dataset: expected a prompt before the solution"),
        ({"label": True}, "all labels of train_dataset are 1: expected right and wrong"),
    ],
)
def test_labels_of_solutions_that_cannot_be_learnt_are_refused(changes, line, build):
    with pytest.raises(BadValue, match=line):
        build("Verifier", rows=[{**ANSWERS[0], **changes}])


def test_a_likelihood_needs_embeddings_that_are_the_head_of_tokens(build, build_llama):
    model = classifier(build_llama(seed=1, tie_word_embeddings=False), "Verifier")
    with pytest.raises(BadValue, match=r"lm_coef: the model's embeddings are not its head"):
        build("Verifier", model=model)
    logged, _ = train(build("Verifier", model=model, lm_coef=0.0))
    assert isfinite(logged[0]["loss"])


@pytest.mark.parametrize("method", ["PRM", "Verifier"])
def test_a_classifier_of_whole_texts_is_refused_for_tokens(method, build, build_llama):
    config = copy.deepcopy(build_llama().config)
    config.num_labels = LABELS[method]
    with pytest.raises(BadValue, match="ForSequenceClassification, which has no head that scores"):
        build(method, model=AutoModelForSequenceClassification.from_config(config))


@pytest.mark.parametrize("margin", [nan, None, "0.5", inf, True])
def test_a_margin_that_is_no_finite_number_is_refused_with_its_row(margin, build):
    values = [0.5 if type(margin) in (float, type(None)) else margin] * len(PAIRS)
    rows = [{**row, "margin": value} for row, value in zip(PAIRS, values, strict=True)]
    rows[3]["margin"] = margin
    place = 3 if type(margin) in (float, type(None)) else 0
    for data in (Dataset.from_list(rows), Dataset.from_list(rows).to_iterable_dataset()):
        with pytest.raises(BadValue, match=f"row {place} of the dataset: margin={margin!r}, exp"):
            build(data=data).train()


def test_equal_and_long_texts_are_dropped_and_counted(build, caplog):
    """Texts may become equal where a template leaves out what differs."""
    same = {"prompt": "1+2=", "chosen": "3", "rejected": "3<eos>"}
    long = {"prompt": "1" * 30, "chosen": "2", "rejected": "3"}
    trainer = build(rows=[*PAIRS, same, long, long], max_length=20)
    assert len(trainer.train_dataset) == len(PAIRS)
    assert "2 of 13 rows are dropped: a text of theirs has no token, or more than" in caplog.text
    assert "1 of 11 rows are dropped: their two texts are equal" in caplog.text
    with pytest.raises(BadValue, match="no pair of the dataset has two different texts"):
        build(rows=[same])


def test_a_prompt_may_be_part_of_both_texts_or_a_conversation(build):
    whole = [{name: row["prompt"] + row[name] for name in ("chosen", "rejected")} for row in PAIRS]
    turns = [
        {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            **{n: [{"role": "assistant", "content": row[n]}] for n in ("chosen", "rejected")},
        }
        for row in PAIRS
    ]
    one, other, chat = (build(rows=rows).train_dataset for rows in (PAIRS, whole, turns))
    assert one.to_list() == other.to_list()
    tokenizer = build().processing_class
    assert tokenizer.decode(chat[0]["chosen_ids"]) == "<user>1+3=<assistant>4<eos>"
    again = build(data=chat).train_dataset
    assert again.to_list() == chat.to_list()
    with pytest.raises(BadValue, match="expected texts or lists of messages"):
        build(rows=[{**PAIRS[0], "prompt": turns[0]["prompt"]}])


def test_labels_stay_integers_and_are_cut_with_their_tokens(build, caplog):
    row = {"prompt": "1+2?", "completions": ["1 and 2", "so 3"], "labels": [True, False]}
    wrong, right = ({**row, "labels": [label] * 2} for label in (False, True))
    trainer = build("PRM", rows=[row, wrong])
    (ids, labels), tokenizer = trainer.train_dataset[0].values(), trainer.processing_class
    assert tokenizer.decode(ids) == "1+2?1 and 2\nso 3\n"
    assert labels == [-100] * 11 + [1] + [-100] * 4 + [0]
    assert all(type(label) is int for label in labels)
    long = {**row, "prompt": "1" * 40}
    shorter = build("PRM", rows=[row, wrong, SOLUTIONS[0], long], max_length=15)
    for found in shorter.train_dataset:
        assert len(found["labels"]) == len(found["input_ids"]) <= 15
    assert shorter.train_dataset[0]["labels"] == labels[:15]
    assert "1 of 4 rows are dropped: no step ends within max_length=15" in caplog.text
    steps = build("PRM", max_completion_length=8, rows=[row, wrong]).train_dataset[0]
    assert (steps["input_ids"], steps["labels"]) == (ids[:12], labels[:12])
    last = build("PRM", rows=[row, right], train_on_last_step_only=True)
    assert last.train_dataset[0]["labels"] == [-100] * 16 + [0]
    held_out = build("PRM", evaluation=Dataset.from_list([row]), train_on_last_step_only=True)
    assert held_out.eval_dataset[0]["labels"] == labels


def test_a_prompt_of_messages_is_read_as_a_rater_reads_it(build):
    turns, texts = (
        [{**row, "prompt": as_asked(row["prompt"])} for row in SOLUTIONS]
        for as_asked in (
            lambda text: [{"role": "user", "content": text}],
            "<user>{}<assistant>".format,
        )
    )
    found, expected = (build("PRM", rows=rows).train_dataset.to_list() for rows in (turns, texts))
    assert found == expected


def test_a_begin_token_stands_before_the_prompt(build, tiny_tokenizer):
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.bos_token = "<user>"
    (with_begin, without) = (
        build("PRM", tokenizer=t).train_dataset[0]["input_ids"] for t in (tokenizer, None)
    )
    assert with_begin == [tokenizer.bos_token_id, *without]


def test_a_separator_that_is_a_token_with_the_next_step_is_refused(build, tiny_tokenizer):
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    words = {**tiny_tokenizer.get_vocab(), "\n\n": 64}
    inner = Tokenizer(WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = Split(Regex(r"\n\n|[\s\S]"), "isolated")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    rows = [*SOLUTIONS, {"prompt": "1?", "completions": ["a", "\nb"], "labels": [True, True]}]
    with pytest.raises(BadValue, match=r"row 10 of .*: step_separator='\\n' and the beginning of"):
        build("PRM", rows=rows, tokenizer=tokenizer)
    fine = build("PRM", rows=rows, tokenizer=tokenizer, step_separator=";")
    assert len(fine.train_dataset) == 11


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"labels": [True]}, "row 0 of the dataset: 1 labels for 2 steps, expected one a step"),
        ({"prompt": 7}, "row 0 of the dataset: prompt=7, expected a text or messages"),
        ({"labels": None}, "row 0 of the dataset: no labels for 2 steps"),
        ({"labels": [2, 0]}, "row 0 of the dataset: label 2 of a step, expected True or False"),
        ({"prompt": "", "completions": ["", "so"]}, "row 0 of the dataset: expected a token befo"),
        ({"completions": [], "labels": []}, "row 0 of the dataset: completions=.*one a step"),
        ({"labels": [True, True]}, "all labels of train_dataset are 1: expected right and wrong"),
    ],
)
def test_labels_that_are_not_one_a_step_or_of_one_kind_are_refused(changes, line, build):
    row = {"prompt": "1+2?", "completions": ["1 and 2", "so 3"], "labels": [True, False]}
    with pytest.raises(BadValue, match=line):
        build("PRM", rows=[{**row, **changes}])


@pytest.mark.parametrize("method", METHODS)
def test_token_ids_are_kept(method, build):
    (logged, moved), (again, other) = (
        train(build(method, data=data)) for data in (None, build(method).train_dataset)
    )
    assert torch.equal(moved, other)
    assert logged[0]["loss"] == again[0]["loss"]


def test_encoded_labels_are_checked(build):
    row = {"input_ids": [7, 8, 9], "labels": [-100, True, 0]}
    for changes, line in (
        ({"labels": [-100, 1]}, "2 labels for 3 tokens"),
        ({"labels": [-100, 3, 0]}, "label 3 of a step"),
    ):
        with pytest.raises(BadValue, match=line):
            build("PRM", rows=[{**row, **changes}])


@pytest.mark.parametrize("method", METHODS)
def test_the_held_out_loss_does_not_depend_on_the_batch(method, build):
    held_out = Dataset.from_list(ROWS[method][:7])
    logs = [
        build(method, evaluation=held_out, per_device_eval_batch_size=size).evaluate()
        for size in (1, 3, 7)
    ]
    for name in ("eval_loss", "eval_accuracy", *(["eval_margin"] if method == "Reward" else [])):
        assert logs[0][name] == pytest.approx(logs[2][name], abs=1e-5), name
        assert logs[1][name] == pytest.approx(logs[2][name], abs=1e-5), name
    (row,), _ = train(build(method, rows=ROWS[method][:7], learning_rate=0.0))
    assert logs[0]["eval_loss"] == pytest.approx(row["loss"], rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_is_the_same_run(method, build, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    settings |= {"per_device_train_batch_size": 4, "optim": "adamw_torch"}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = build(method, **settings)
        trainer.train(resume_from_checkpoint=start)
        names = ("step", "loss", "accuracy", "margin", "num_tokens", "grad_norm")
        logged = [row for row in trainer.state.log_history if "loss" in row]
        runs.append(([[row.get(n) for n in names] for row in logged], weights(trainer).tolist()))
    assert runs[1] == runs[0]


@pytest.mark.parametrize("method", METHODS)
def test_a_stream_is_trained_and_evaluated_on(method, build):
    stream = Dataset.from_list(ROWS[method]).to_iterable_dataset()
    settings = {"per_device_train_batch_size": 5, "max_steps": 3}
    trainer = build(method, data=stream, evaluation=stream, **settings)
    logged, moved = train(trainer)
    (first, *_), _ = train(build(method, data=Dataset.from_list(ROWS[method][:5]), **settings))
    assert logged[0]["loss"] == pytest.approx(first["loss"], rel=1e-5)
    assert len(logged) == 3
    assert moved.isfinite().all()
    whole = build(method, evaluation=Dataset.from_list(ROWS[method]), model=trainer.model)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(whole.evaluate()["eval_loss"], rel=1e-5)
    with pytest.raises(BadValue, match="which has no length: set max_steps"):
        build(method, data=stream, max_steps=-1)


PEFT = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
TASKS = (None, "SEQ_CLS", "CAUSAL_LM")


@PEFT
@pytest.mark.parametrize("task", TASKS)
def test_adapters_and_their_head_score_the_same_after_loading(
    task, build, build_llama, tiny_tokenizer, tmp_path
):
    """TRL leaves the head at its random weights, saves none, or raises."""
    build_llama(seed=1).save_pretrained(tmp_path / "base")
    tiny_tokenizer.save_pretrained(tmp_path / "base")
    asked = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type=task)
    trainer = build(model=str(tmp_path / "base"), peft=asked, max_steps=3, learning_rate=0.1)
    train(trainer)
    assert asked.task_type == task
    assert asked.modules_to_save is None
    trainer.save_model(str(tmp_path / "saved"))
    rows = pad_rows([[7, 8, 9, 1], [7, 8, 5, 5, 5, 1]], 0)
    torch.manual_seed(99)  # which a new head would be drawn by
    with torch.no_grad():
        expected = end_scores(trainer.model.eval(), *rows)
        mine = end_scores(reward_model(str(tmp_path / "saved"), {}).eval(), *rows)
        theirs = AutoPeftModelForSequenceClassification.from_pretrained(
            tmp_path / "saved", num_labels=1
        )
        peers = end_scores(theirs.eval(), *rows)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(peers, expected, rtol=0, atol=1e-5)


@PEFT
def test_adapters_train_the_tokens_of_a_copied_template(
    build, build_llama, tiny_tokenizer, tmp_path
):
    """A classifier has no head of tokens that would be trained with them."""
    other = copy.deepcopy(tiny_tokenizer)
    other.add_tokens("<new>")
    other.save_pretrained(tmp_path / "other")
    trainer = build(
        model=classifier(build_llama(seed=1)),
        peft=LoraConfig(r=4, target_modules=["q_proj"]),
        chat_template_path=str(tmp_path / "other"),
    )
    names = {name for name, p in trainer.model.named_parameters() if p.requires_grad}
    assert any("trainable_tokens" in name for name in names)
    assert any("score" in name for name in names)
    logged, _ = train(trainer)
    assert isfinite(logged[0]["loss"])


@pytest.mark.parametrize("method", METHODS)
def test_activation_checkpoints_change_nothing(method, build):
    settings = {"gradient_checkpointing_kwargs": {"selective": True}}
    runs = [
        train(build(method, max_steps=2, gradient_checkpointing=on, **more))[1]
        for on, more in ((False, {}), (True, {}), (True, settings))
    ]
    for moved in runs[1:]:
        torch.testing.assert_close(moved, runs[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_bfloat16_changes_the_loss_by_its_rounding(method, build):
    (one,), _ = train(build(method))
    (other,), _ = train(build(method, bf16=True))
    assert one["loss"] != other["loss"]
    assert other["loss"] == pytest.approx(one["loss"], rel=0.05)


@PEFT
def test_adapters_without_a_head_are_refused_as_a_reward(build_llama, tmp_path):
    from peft import get_peft_model

    build_llama(seed=1).save_pretrained(tmp_path / "base")
    base = AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=1)
    get_peft_model(base, LoraConfig(target_modules=["q_proj"])).save_pretrained(tmp_path / "bare")
    with pytest.raises(BadValue, match="saved without the head that scores texts, which would be"):
        reward_model(str(tmp_path / "bare"), {})


def test_a_language_model_by_name_gets_a_head_of_the_seed(
    build, build_llama, tiny_tokenizer, tmp_path
):
    build_llama(seed=1).save_pretrained(tmp_path / "base")
    tiny_tokenizer.save_pretrained(tmp_path / "base")
    for method in METHODS:
        one, two, other = (
            build(method, model=str(tmp_path / "base"), seed=seed).model for seed in (3, 3, 4)
        )
        assert one.config.num_labels == LABELS[method]
        assert torch.equal(one.score.weight, two.score.weight)
        assert not torch.equal(one.score.weight, other.score.weight)
        body = build_llama(seed=1).model.layers[0].mlp.up_proj.weight
        assert torch.equal(one.model.layers[0].mlp.up_proj.weight, body)


@pytest.mark.parametrize("method", METHODS)
def test_models_without_the_head_are_refused(method, build, build_llama):
    other = classifier(build_llama(), "PRM" if method != "PRM" else "Reward")
    line = f"num_labels={3 - LABELS[method]}, expected {LABELS[method]}: load it"
    with pytest.raises(BadValue, match=line):
        build(method, model=other)
    llama = build_llama()
    llama.config.num_labels = LABELS[method]
    with pytest.raises(BadValue, match="is a LlamaForCausalLM, which has no head that scores"):
        build(method, model=llama)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", [nan, inf])
def test_a_score_that_is_not_finite_stops_with_its_text(method, number, build):
    trainer = build(method)
    with torch.no_grad():
        trainer.model.model.embed_tokens.weight[8] = number  # "3"
    with pytest.raises(BadValue, match=r"score of '.*3.*': .*nan.*, expected a finite number"):
        trainer.train()


@pytest.mark.parametrize(
    ("method", "changes", "line"),
    [
        ("Reward", {"center_rewards_coefficient": -0.1}, "expected at least 0"),
        ("Reward", {"center_rewards_coefficient": nan}, "expected at least 0"),
        ("Reward", {"max_length": 0}, "expected at least 1"),
        ("Reward", {"activation_offloading": True}, "is not supported"),
        ("Reward", {"label_smoothing_factor": 0.1}, "is not supported"),
        ("PRM", {"max_completion_length": 0}, "expected at least 1"),
        ("PRM", {"label_smoothing_factor": 0.1}, "is not supported"),
    ],
)
def test_settings_that_have_no_meaning_are_refused(method, changes, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        config(method, tmp_path, **changes)


def test_data_and_arguments_that_cannot_be_trained_on_are_refused(build, build_llama, tmp_path):
    with pytest.raises(MissingColumn, match="'rejected'"):
        build(rows=[{"prompt": "1", "chosen": "2"}])
    with pytest.raises(MissingColumn, match="'labels'"):
        build("PRM", rows=[{"prompt": "1", "completions": ["2"]}])
    with pytest.raises(BadValue, match="has images"):
        build(rows=[{**PAIRS[0], "images": []}])
    for method, names in {
        "Reward": ("compute_metrics", "preprocess_logits_for_metrics", "quantization_config"),
        "PRM": ("compute_metrics", "preprocess_logits_for_metrics", "model_init"),
    }.items():
        for name in names:
            with pytest.raises(BadValue, match=rf"{name}=...\) is not supported"):
                getattr(core, f"{method}Trainer")(build_llama(), **{name: print})
    with pytest.raises(BadValue, match="give a model, or the name of one"):
        core.PRMTrainer(args=config("PRM", tmp_path))
    trainer = build()
    with pytest.raises(BadValue, match="computes no logits"):
        trainer.compute_loss(trainer.model, {}, return_outputs=True)
    with pytest.raises(BadValue, match="override prepared"):
        type("Old", (core.RewardTrainer,), {"_prepare_dataset": lambda *_: None})
