"""Trained scorers rate the answers of an evaluation as they were trained to read them."""

import copy
import json
from dataclasses import asdict

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from test_scoring_trainers import METHODS, ROWS, classifier, config

import core
from core.evaluate.model_scores import score_model
from core.evaluate.outputs import score_file
from core.forward.head_scores import end_scores, token_scores
from core.scoring.rater import SEPARATOR, Asked, load_rater
from core.stages.loading import Loading
from eval.errors import BadValue
from eval.samples.evaluation import Decoding
from eval.samples.prompted_samples import read_graded
from eval.sets.benchmarks import find_benchmark

HERE = Loading(device="cpu")
TEXTS = [
    Asked("12+7=", "19", chat=False),
    Asked("1+3=", "so it is 4\nand no more\n", chat=False),
    Asked("9+9=", "18", chat=False),
    Asked("2+2=", "x", chat=False),
]


@pytest.fixture
def policy(build_llama, tiny_tokenizer, tmp_path):
    """The folder of a random policy."""
    folder = tmp_path / "policy"
    build_llama(max_position_embeddings=512).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def saved(build_llama, tiny_tokenizer, tmp_path):
    """A function that trains a scorer by two steps and returns its folder and the model."""

    def save(method, **keywords):
        trainer = getattr(core, f"{method}Trainer")(
            model=classifier(build_llama(seed=1), method),
            args=config(method, tmp_path / "training", max_steps=2, optim="adamw_torch"),
            train_dataset=Dataset.from_list(ROWS[method]),
            processing_class=copy.deepcopy(tiny_tokenizer),
            **keywords,
        )
        trainer.train()
        folder = tmp_path / method
        trainer.save_model(str(folder))
        return folder, trainer.model.eval()

    return save


def by_hand(method, model, tokenizer, asked):
    """The number of an answer alone in its batch, of ids that are put together here."""
    prompt = tokenizer(asked.prompt)["input_ids"]
    end = [tokenizer.eos_token_id]

    def plain(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    if method == "PRM":
        begin = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        parts = [f"{step}{SEPARATOR}" for step in asked.answer.split(SEPARATOR) if step]
        ids = [*begin, *plain(asked.prompt), *(i for part in parts for i in plain(part))]
    else:
        ids = [*prompt, *plain(asked.answer), *end]
    row = torch.tensor([ids])
    if method == "Reward":
        return end_scores(model, row, torch.ones_like(row))[0, 0].item()
    last = token_scores(model, row, torch.ones_like(row))[-1]
    return (last.softmax(-1)[1] if method == "PRM" else last[0]).item()


@pytest.mark.parametrize("method", METHODS)
@torch.no_grad()
def test_a_rating_is_the_score_at_the_end_whatever_else_is_rated(method, saved, tiny_tokenizer):
    with torch.enable_grad():
        folder, model = saved(method)
    rater = load_rater(str(folder), HERE)
    ratings = rater(TEXTS)
    expected = [by_hand(method, model, tiny_tokenizer, asked) for asked in TEXTS]
    assert ratings == pytest.approx(expected, abs=1e-5)
    assert len({round(rating, 6) for rating in ratings}) == len(TEXTS)
    assert [rater([asked])[0] for asked in TEXTS] == pytest.approx(ratings, abs=1e-5)
    assert rater([]) == []


def test_adapters_rate_as_the_trained_model(policy, tmp_path):
    adapters = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    trainer = core.RewardTrainer(
        model=str(policy),
        args=config("Reward", tmp_path, max_steps=2),
        train_dataset=Dataset.from_list(ROWS["Reward"]),
        peft_config=adapters,
    )
    trainer.train()
    folder = tmp_path / "adapters"
    trainer.save_model(str(folder))
    with torch.no_grad():
        expected = [
            by_hand("Reward", trainer.model.eval(), trainer.processing_class, asked)
            for asked in TEXTS
        ]
    assert load_rater(str(folder), HERE)(TEXTS) == pytest.approx(expected, abs=1e-5)


def test_an_answer_without_a_step_is_rated_zero_and_a_separator_is_read(saved):
    folder, _ = saved("PRM")
    assert load_rater(str(folder), HERE)([Asked("1+1=", "", chat=False)]) == [0.0]
    spaced = load_rater(str(folder), HERE, " ")
    (row,) = [spaced.encode(Asked("1+1=", "a b", chat=False))]
    assert row == spaced.encode(Asked("1+1=", "a b ", chat=False))
    letters = load_rater(str(folder), HERE, "")
    assert len(letters.encode(Asked("1+1=", "ab", chat=False))) < len(row)


def test_what_does_not_rate_is_refused(saved, policy, tmp_path):
    with pytest.raises(BadValue, match="LlamaForCausalLM with 2 labels rates no answers"):
        load_rater(str(policy), HERE)
    folder, model = saved("Verifier")
    with pytest.raises(BadValue, match="scores tokens, not steps: leave it out"):
        load_rater(str(folder), HERE, ";")
    rater = load_rater(str(folder), HERE)
    rater.model.score.bias.data.fill_(torch.nan)
    with pytest.raises(BadValue, match="rates '19' with nan: expected a finite number"):
        rater(TEXTS[:1])
    settings = json.loads((folder / "config.json").read_text())
    bare = tmp_path / "bare"
    model.model.save_pretrained(bare)
    (bare / "config.json").write_text(json.dumps(settings))
    with pytest.raises(BadValue, match=r"its files lack score\.bias, score\.weight: train it"):
        load_rater(str(bare), HERE)


@pytest.mark.parametrize("method", ["Reward", "Verifier"])
def test_an_evaluation_scores_what_its_scorer_chooses_as_a_file_of_ratings_does(
    method, saved, policy, tmp_path
):
    folder, _ = saved(method)
    rater = load_rater(str(folder), HERE)
    benchmark = find_benchmark("pocket-gsm8k")
    decoding = Decoding(samples=4, temperature=1.0, max_tokens=8)
    scores = score_model(
        str(policy),
        [benchmark.name],
        mode="cot",
        decoding=decoding,
        data=None,
        limit=5,
        max_tokens=8,
        out=tmp_path / "out",
        rater=rater,
    )
    rows = [asdict(s) for path in (tmp_path / "out").glob("*.jsonl*") for s in read_graded(path)]
    prompts = {problem.id: benchmark.prompt(problem) for problem in benchmark.load()}
    ratings = rater([Asked(prompts[row["id"]], row["output"]) for row in rows])
    outputs = tmp_path / "rated.jsonl"
    outputs.write_text(
        "\n".join(
            json.dumps({**{k: row[k] for k in ("id", "output", "sample")}, "rm_score": rating})
            for row, rating in zip(rows, ratings, strict=True)
        )
    )
    _, of_file = score_file(outputs, benchmark, data=None, mode="cot")
    chosen = [(row.metric, row.value) for row in scores if row.metric.startswith("rm")]
    weighted = ["rm-weighted@4"] if min(ratings) >= 0 else []
    assert [metric for metric, _ in chosen] == ["rm@1", "rm@2", "rm@4", *weighted]
    assert chosen == [(row.metric, row.value) for row in of_file if row.metric.startswith("rm")]
