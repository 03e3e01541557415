"""BCO: the running mean of rewards, its checkpoint, weights of prompts, and what is refused."""

import pytest
import torch
from datasets import Dataset
from test_dpo import logs, train, weights
from test_kto import PAIRS, ROWS, SPLIT
from test_kto import config as config_of

from core import BCOConfig, BCOTrainer
from core.preference.density_ratio import fit_density_ratio
from core.preference.unpaired_collate import WEIGHT
from eval.errors import BadValue

pytestmark = pytest.mark.versions

CLOSE = 1e-5
# Prompts of desirable answers are longer, except for those that both labels have.
MISMATCH = [
    {"prompt": "1" * (n if label else n - 3), "completion": f"{n}", "label": label}
    for n in range(5, 15)
    for label in (True, False)
]


def embed(input_ids, attention_mask):
    """The length of a prompt."""
    assert input_ids.shape == attention_mask.shape
    return attention_mask.sum(1, keepdim=True).float()


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    def make(rows=ROWS, data=None, evaluation=None, reference=None, embedding=None, **changes):
        return BCOTrainer(
            model=build_llama(seed=1),
            ref_model=build_llama(seed=2) if reference is None else reference,
            args=config_of(tmp_path, BCOConfig, **changes),
            train_dataset=Dataset.from_list(rows) if data is None else data,
            eval_dataset=evaluation,
            processing_class=tiny_tokenizer,
            embedding_func=embedding,
            embedding_tokenizer=embedding and tiny_tokenizer,
        )

    return make


def test_ten_answers_are_one_step_however_they_are_split(build):
    """Windows of 4, 4 and 2 rows, with a shift that is not 0."""
    scope = {"batch_scope": "step", "max_steps": 2}
    (whole, one), (split, moved) = (train(build(**scope, **changes)) for changes in ({}, SPLIT))
    assert (one - moved).norm() < CLOSE * (one - weights(build())).norm()
    for row, other in zip(whole, split, strict=True):
        assert abs(row["delta"]) > 0.1
        assert other["delta"] == pytest.approx(row["delta"], rel=1e-4)
        assert other["loss"] == pytest.approx(row["loss"], rel=1e-4)


def test_delta_is_the_mean_of_all_rewards_seen(build):
    settings = {"per_device_train_batch_size": 5, "max_steps": 6, "learning_rate": 5e-2}
    rows, _ = train(build(**settings))
    seen, count = 0.0, 0
    labels = [row["label"] for row in ROWS]
    for step, row in enumerate(rows):
        good = sum(labels[:5] if step % 2 == 0 else labels[5:])
        seen += good * row["rewards/chosen"] + (5 - good) * row["rewards/rejected"]
        count += 5
        assert row["delta"] == pytest.approx(seen / count, abs=1e-5)
    assert rows[0]["delta"] != pytest.approx(rows[-1]["delta"], abs=1e-3)


@pytest.mark.parametrize("scope", ["micro_batch", "step"])
def test_a_resumed_run_has_the_running_mean_and_the_weights_of_one_without_a_break(
    scope, build, tmp_path
):
    settings = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 2, "max_steps": 5}
    settings |= {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    settings |= {"optim": "adamw_torch", "batch_scope": scope}
    runs = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        trainer = build(**settings)
        trainer.train(resume_from_checkpoint=start)
        names = ("step", "loss", "rewards/margins", "delta", "num_tokens", "grad_norm")
        rows = [[row.get(name) for name in names] for row in logs(trainer)]
        runs.append((rows, trainer.statistic, weights(trainer).tolist()))
    assert runs[1] == runs[0]
    assert abs(runs[0][1]) > 0.1


def test_an_evaluation_reads_delta_and_leaves_it_and_a_new_training_forgets_it(build):
    trainer = build(evaluation=Dataset.from_list(ROWS[:5]), max_steps=2)
    assert trainer.evaluate()["eval_delta"] == 0
    trainer.train()
    delta = trainer.statistic
    losses = [trainer.evaluate() for _ in range(2)]
    assert losses[0]["eval_delta"] == losses[1]["eval_delta"] == delta != 0
    assert losses[0]["eval_loss"] == losses[1]["eval_loss"]
    trainer.state.log_history.clear()
    trainer.train()
    assert logs(trainer)[0]["delta"] != pytest.approx(delta, abs=1e-6)


def test_undesirable_answers_weigh_as_their_prompts_are_likely_desirable(build):
    trainer = build(rows=MISMATCH, embedding=embed, max_steps=2)
    rows = list(trainer.train_dataset)
    weights_by_length = {}
    for row in rows:
        if row["label"]:
            assert row[WEIGHT] == 1
        else:
            weights_by_length[len(row["prompt_ids"])] = row[WEIGHT]
    lengths = sorted(weights_by_length)
    assert lengths == list(range(2, 12))
    found = [weights_by_length[n] for n in lengths]
    assert found == sorted(found)
    assert found[0] == 0.5
    assert 1 < found[-1] < 10
    weighed, _ = train(trainer)
    plain, _ = train(build(rows=MISMATCH, max_steps=2))
    assert weighed[0]["loss"] != pytest.approx(plain[0]["loss"], abs=1e-3)
    assert weighed[0]["delta"] == pytest.approx(plain[0]["delta"])


def test_bounds_and_the_number_of_prompts_of_the_classifier_act(build):
    def found(**changes):
        trainer = build(rows=MISMATCH, embedding=embed, **changes)
        return list(trainer.train_dataset[WEIGHT])

    bounded = found(min_density_ratio=0.9, max_density_ratio=1.1)
    assert {min(bounded), max(bounded)} == {0.9, 1.1}
    assert found(prompt_sample_size=3) != found()
    assert found(prompt_sample_size=3) == found(prompt_sample_size=3)


def test_held_out_answers_are_weighed_by_the_classifier_of_the_training(build):
    held_out = Dataset.from_list(MISMATCH[:6])
    trainer = build(rows=MISMATCH, embedding=embed, evaluation=held_out)
    weights_of = {len(r["prompt_ids"]): r[WEIGHT] for r in trainer.train_dataset if not r["label"]}
    for row in trainer.eval_dataset:
        expected = 1 if row["label"] else weights_of[len(row["prompt_ids"])]
        assert row[WEIGHT] == pytest.approx(expected)
    good = Dataset.from_list([row for row in MISMATCH if row["label"]])
    assert trainer.evaluate(good)["eval_loss"] > 0


def test_equal_prompts_of_both_labels_have_the_weight_one():
    rows = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    ratio = fit_density_ratio(rows, rows)
    assert ratio(rows, 0.0, 99.0).tolist() == pytest.approx([1.0] * 20, abs=1e-6)


def test_pairs_and_streams_are_trained_on(build):
    assert sum(build(rows=PAIRS).train_dataset["label"]) == len(PAIRS)
    stream = Dataset.from_list(PAIRS).to_iterable_dataset()
    rows, _ = train(build(data=stream, per_device_train_batch_size=5, max_steps=3))
    assert all(row["loss"] > 0 for row in rows)
    with pytest.raises(BadValue, match="cannot be read beforehand"):
        build(data=stream, embedding=embed)


def test_one_row_a_batch_is_trained_on(build):
    rows, _ = train(build(per_device_train_batch_size=1, max_steps=3))
    assert len(rows) == 3


def test_a_named_reference_is_loaded(build, build_llama, tmp_path):
    build_llama(seed=2).save_pretrained(tmp_path / "reference")
    by_name, _ = train(build(reference=str(tmp_path / "reference")))
    given, _ = train(build())
    assert by_name[0]["loss"] == pytest.approx(given[0]["loss"], abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"beta": -1.0}, "expected a number above 0"),
        ({"max_completion_length": 9}, "models with an encoder are not supported"),
        ({"generate_during_eval": True}, "samples no answers"),
        ({"prompt_sample_size": 0}, "expected at least 1"),
        ({"min_density_ratio": 20.0}, "is above max_density_ratio=10.0"),
        ({"train_sampling_strategy": "group_by_length"}, "expected one of 'sequential', 'random'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        config_of(tmp_path, BCOConfig, **changes)


@pytest.mark.parametrize(
    "changes", [{"prompt_sample_size": 9}, {"min_density_ratio": 0.1}, {"max_density_ratio": 2.0}]
)
def test_weights_of_prompts_without_embeddings_are_refused(changes, build):
    with pytest.raises(BadValue, match="pass embedding_func and embedding_tokenizer"):
        build(**changes)


def test_embeddings_that_cannot_be_used_are_refused(build, build_llama, tiny_tokenizer, tmp_path):
    with pytest.raises(BadValue, match=r"returned shape \(5,\) for 5 prompts"):
        build(embedding=lambda **tokens: embed(**tokens)[:, 0])
    with pytest.raises(BadValue, match="expected finite numbers"):
        build(embedding=lambda **tokens: embed(**tokens) / 0)
    good = [row for row in ROWS if row["label"]]
    with pytest.raises(BadValue, match="expected prompts of both labels, none is False"):
        build(rows=good, embedding=embed)
    for name, value in (("embedding_func", embed), ("embedding_tokenizer", tiny_tokenizer)):
        with pytest.raises(BadValue, match="expected both or none"):
            BCOTrainer(build_llama(), **{name: value})
    for name in ("model_init", "ref_adapter_name"):
        with pytest.raises(BadValue, match=f"{name}=.... is not supported"):
            BCOTrainer(build_llama(), args=config_of(tmp_path, BCOConfig), **{name: "x"})
