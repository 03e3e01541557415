"""Laws of a student that is its own teacher: its weights, and what its prompts are made of."""

from re import escape

import pytest
import torch
from datasets import Dataset
from grpo_runs import weights
from lora_models import lora
from test_distillation import QUIET, sums
from transformers import GPT2Config, GPT2LMHeadModel, TrainerCallback

import core
from core.collect.feedback import call_feedback, checked_functions
from core.collect.reward_calls import Samples
from core.distillation.demonstrations import Hint, hints_of, prompt_with, without_thoughts
from core.distillation.hints import context_text, rewritten
from core.distillation.own_teacher_config import self_measure, token_losses
from core.errors import RewardError
from core.forward.batches import TEACHER_KEYS, for_teacher, token_batch, trim
from core.losses.token_weights import clipped_ratio
from core.shards.adapters import add_adapters
from core.shards.reference import merged_copy, mix_into
from eval.errors import BadValue

SAME = {"teacher_prompt_template": "{prompt}{privileged_context}"}  # with contexts that are empty
FULL = {"distillation_mode": "full_logits"}
SHARED = {"distillation_mode": "sampled_completion"}
REVERSE = {**FULL, "distillation_alpha": 1.0}
MODES = {"divergence": REVERSE, "advantage of a completion": REVERSE | SHARED}
FAILS = {"reward_funcs": lambda completions, **_: [0.0] * len(completions)}
FIRST = {"reward_funcs": lambda completions, **_: [1.0] + [0.0] * (len(completions) - 1)}


def hinted(text="x"):
    rows = sums()
    return rows.add_column("privileged_context", [text] * len(rows))


@pytest.fixture
def make(build_llama, tiny_tokenizer, tmp_path):
    """Return a builder of trainers; `batches` collects their rollouts."""

    def build(name, *, model=None, data=None, batches=None, trainer=(), **changes):
        class Ours(getattr(core, f"{name}Trainer")):
            def rollout(self, rows):
                batch = super().rollout(rows)
                if batches is not None:
                    batches.append(batch)
                return batch

        idle = {"SDFT": {"distillation_topk": 100}, "SDPO": {}}[name]
        settings = QUIET | {"num_generations": 4, **REVERSE, **idle, **changes}
        return Ours(
            model or build_llama(),
            args=getattr(core, f"{name}Config")(output_dir=str(tmp_path), **settings),
            train_dataset=hinted() if data is None else data,
            processing_class=tiny_tokenizer,
            **dict(trainer) | ({} if name == "SDFT" or "reward_funcs" in dict(trainer) else FIRST),
        )

    return build


def measured_at(batch, args, student, teacher):
    """The losses of all tokens of a rollout, one completion at a time."""
    found = []
    for i, count in enumerate(batch["completion_mask"].sum(1).tolist()):
        pair = []
        for model, rows in ((student, batch), (teacher, for_teacher(batch))):
            prompt = rows["prompt_ids"][i][rows["prompt_mask"][i].bool()]
            ids = torch.cat([prompt, rows["completion_ids"][i, :count]])[None]
            logits = model.eval()(ids).logits[0, len(prompt) - 1 : -1] / args.temperature
            pair.append(logits.log_softmax(-1))
        numbers = self_measure(*pair, batch["completion_ids"][i, :count], args)
        found.append(token_losses(numbers[None], None, torch.ones(1, count), args)[0])
    return found


@pytest.mark.parametrize("name", ["SDFT", "SDPO"])
@pytest.mark.parametrize("normalize", ["sequence", "token"])
@pytest.mark.parametrize("mode", MODES)
def test_the_loss_is_the_mean_over_tokens_behind_both_prompts(
    name, normalize, mode, make, build_llama
):
    batches = []
    trainer = make(name, batches=batches, max_steps=1, normalize=normalize, **MODES[mode])
    trainer.train()
    (batch,) = batches
    with torch.no_grad():
        rows = measured_at(batch, trainer.args, build_llama(), build_llama())
    if name == "SDPO":  # the first of all completions succeeded: its group's others have a hint
        assert batch["hinted"].tolist() == [0, 1, 1, 1, 0, 0, 0, 0]
        rows = [x * hint for x, hint in zip(rows, batch["hinted"], strict=True)]
        count = sum(len(rows[i]) for i in (1, 2, 3))
    else:
        count = sum(map(len, rows))
    expected = (
        torch.cat(rows).sum() / count
        if normalize == "token"
        else torch.stack([x.mean() for x in rows]).mean()
    )
    assert abs(expected) > 0.01
    assert trainer.state.log_history[0]["loss"] == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("kind", ["base", "live", "ema"])
@pytest.mark.parametrize("padding", [None, 32])
def test_equal_prompts_and_weights_have_a_loss_of_zero(kind, padding, make):
    trainer = make(
        "SDFT",
        data=hinted(""),
        teacher_model_kind=kind,
        pad_to_multiple_of=padding,
        learning_rate=0.0,
        **SAME,
    )
    trainer.train()
    logged = [row for row in trainer.state.log_history if "loss" in row]
    limit = 1e-7 if kind == "ema" else 0.0  # an average of equal numbers is rounded
    assert all(abs(row["loss"]) <= limit for row in logged)
    assert len(logged) == 3


class KeepWeights(TrainerCallback):
    """Keeps the weights at the start and after each step."""

    def __init__(self, model):
        self.seen = [weights(model).clone()]

    def on_step_end(self, *_, model, **__):
        self.seen.append(weights(model).clone())


@pytest.mark.parametrize("name", ["SDFT", "SDPO"])
def test_the_teacher_is_the_start_the_student_or_their_moving_average(name, make):
    for kind, rate in (("base", None), ("live", None), ("ema", 0.25)):
        average = {} if rate is None else {"teacher_update_rate": rate, "teacher_sync_steps": 2}
        trainer = make(name, teacher_model_kind=kind, max_steps=4, **average)
        kept = KeepWeights(trainer.model)
        trainer.add_callback(kept)
        trainer.train()
        with trainer.teacher.whole() as teacher:
            found = weights(teacher)
        start, second, fourth = kept.seen[0], kept.seen[2], kept.seen[4]
        assert (fourth - start).abs().max() > 1e-4
        expected = {
            "base": start,
            "live": fourth,
            "ema": 0.75 * (0.75 * start + 0.25 * second) + 0.25 * fourth,
        }[kind]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-7)


def test_a_live_teacher_has_no_dropout_while_its_student_has(make):
    config = GPT2Config(
        vocab_size=64, n_embd=32, n_layer=1, n_head=4, n_positions=64, resid_pdrop=0.5
    )
    trainer = make(
        "SDFT",
        model=GPT2LMHeadModel(config),
        teacher_model_kind="live",
        disable_dropout=False,
        max_steps=1,
    )
    seen = []
    trainer.model.transformer.h[0].mlp.dropout.register_forward_hook(
        lambda module, given, found: seen.append(
            (torch.is_grad_enabled(), module.training, bool((found != given[0]).any()))
        )
    )
    trainer.train()
    taught = [row for row in seen if not row[0]]
    trained = [row for row in seen if row[0]]
    assert {row[1:] for row in taught} == {(False, False)}
    assert {row[1:] for row in trained} == {(True, True)}


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_no_success_and_no_feedback_leave_the_policy_as_it_is(weight, make):
    trainer = make("SDPO", trainer=FAILS, distillation_weight=weight, learning_rate=1.0)
    start = weights(trainer.model).clone()
    trainer.train()
    logged = [row for row in trainer.state.log_history if "loss" in row]
    assert [row["grad_norm"] for row in logged] == [0.0] * 3
    assert [row["self_distillation/reprompt_sample_fraction"] for row in logged] == [0.0] * 3
    assert torch.equal(weights(trainer.model), start)


SPLITS = ((8, 1), (4, 2), (2, 4))


@pytest.mark.parametrize("normalize", ["sequence", "token"])
@pytest.mark.parametrize("name", ["SDFT", "SDPO"])
@pytest.mark.parametrize("mode", MODES)
def test_a_split_changes_no_update(name, normalize, mode, make):
    found = []
    for batch, parts in SPLITS:
        trainer = make(
            name,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=parts,
            normalize=normalize,
            max_steps=1,
            **MODES[mode],
        )
        trainer.train()
        found.append(weights(trainer.model))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=2e-6)


def test_several_updates_of_a_rollout_weigh_by_the_clipped_ratio(make):
    kept = []

    def train(clip):
        trainer = make("SDFT", num_iterations=3, distillation_is_clip=clip, learning_rate=0.3)
        inner = trainer.token_losses

        def watch(numbers, inputs):
            kept.append("old_per_token_logps" in inputs)
            return inner(numbers, inputs)

        trainer.token_losses = watch
        trainer.train()
        return weights(trainer.model)

    low, high, none = train(0.9), train(5.0), train(None)
    assert kept == [True] * 6 + [False] * 3
    assert not torch.equal(low, high)
    assert not torch.equal(high, none)


def test_first_tokens_are_skipped(make):
    batches = []
    make("SDFT", batches=batches, num_loss_tokens_to_skip=3, max_steps=1).train()
    mask, trained = batches[0]["completion_mask"], batches[0]["tool_mask"] > 0
    assert not trained[:, :3].any()
    assert torch.equal(trained[:, 3:], mask[:, 3:].bool())


def test_samples_behind_the_teachers_prompt_are_trained_behind_the_students(make):
    batches = []
    trainer = make(
        "SDFT", batches=batches, generate_from_teacher=True, max_steps=1, max_completion_length=4
    )
    asked = []
    inner = trainer.generate
    trainer.generate = lambda prompts: asked.extend(prompts) or inner(prompts)
    trainer.train()
    assert all(prompt.endswith("=\n\nx") for prompt in asked)
    texts = trainer.tokenizer.batch_decode(
        [
            ids[mask.bool()]
            for ids, mask in zip(
                *(batches[0][k] for k in ("prompt_ids", "prompt_mask")), strict=True
            )
        ]
    )
    assert [text + "\n\nx" for text in texts] == asked


def test_adapters(make, build_llama):
    """A base teacher is without new ones, and an average is of the weights they add up to."""
    base = make("SDFT", teacher_model_kind="base", trainer={"peft_config": lora()})
    base.train()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad(), base.teacher.whole() as teacher:
        torch.testing.assert_close(teacher(ids).logits, build_llama()(ids).logits)
    average = make(
        "SDFT", teacher_model_kind="ema", teacher_update_rate=1.0, trainer={"peft_config": lora()}
    )
    average.train()
    with torch.no_grad(), average.teacher.whole() as teacher:
        assert not hasattr(teacher, "get_base_model")
        own = average.model.eval()(ids).logits
        torch.testing.assert_close(teacher(ids).logits, own, rtol=1e-4, atol=1e-5)
        assert (own - build_llama()(ids).logits).abs().max() > 1e-4


def test_an_average_of_merged_weights_is_linear(build_llama):
    args = core.SDFTConfig(output_dir="unused", use_cpu=True, report_to="none")
    model = add_adapters(build_llama(), lora(), args)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight.uniform_(-1, 1)
    teacher, merged = build_llama(), merged_copy(model)
    expected = [
        0.95 * a + 0.05 * b for a, b in zip(teacher.parameters(), merged.parameters(), strict=True)
    ]
    mix_into(teacher, model, 0.05)
    for found, wanted in zip(teacher.parameters(), expected, strict=True):
        torch.testing.assert_close(found.detach(), wanted.detach())


def test_worked_examples_of_the_cards(tmp_path):
    """Values of arXiv 2601.20802 and 2601.19897's cards."""
    student = torch.tensor([2.0, 1.0, 0.0, -1.0], dtype=torch.float64).log_softmax(-1)[None]
    teacher = torch.tensor([0.5, 1.2, 0.4, -0.5], dtype=torch.float64).log_softmax(-1)[None]

    def loss(pair=(student, teacher), token=1, **settings):
        args = core.SDPOConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **settings)
        return self_measure(*pair, torch.tensor([token]), args)[0, 1].item()

    top = {"distillation_mode": "topk_logits", "distillation_topk": 2}
    tables = (
        ({**top, "distillation_add_tail": True}, (0.355794, 0.089135, 0.382763)),
        (top, (0.345995, 0.082341, 0.332724)),
        (FULL, (0.356095, 0.089177, 0.382882)),
    )
    for settings, values in tables:
        for alpha, value in zip((0.0, 0.5, 1.0), values, strict=True):
            assert loss(**settings, distillation_alpha=alpha) == pytest.approx(value, abs=6e-7)
    assert loss() == pytest.approx(0.986136, abs=6e-7)
    ratio = clipped_ratio(torch.tensor([[-1.44019]]), torch.tensor([[-2.5]]), 2.0)
    assert ratio.item() == 2.0
    rows = ([[1.0, 0.0, -1.0], [0.2, 0.3, 0.5]], [[0.5, 1.0, -0.5], [2.0, 0.0, -1.0]])
    pairs = [torch.tensor(x, dtype=torch.float64).log_softmax(-1) for x in rows]
    for alpha, values in ((1.0, (0.239401, 0.891038)), (0.0, (0.245251, 0.691542))):
        for row, value in enumerate(values):
            pair = [x[row : row + 1] for x in pairs]
            found = loss(pair, 0, **FULL, distillation_alpha=alpha)
            assert found == pytest.approx(value, abs=6e-7)


def args_of(tmp_path, **settings):
    return core.SDPOConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **settings)


def test_the_first_other_completion_that_succeeded_is_shown(tmp_path):
    rewards, told = [0, 1, 1, 0, 1, 0, 0, 0], [None, None, "c", "d", "e", "", None, "h"]
    plain = hints_of(rewards, 4, told, args_of(tmp_path))
    assert [hint.solution for hint in plain] == [1, 2, 1, 1, None, 4, 4, 4]
    assert {hint.feedback for hint in plain} == {None}
    own = hints_of(rewards, 4, told, args_of(tmp_path, dont_reprompt_on_self_success=False))
    assert [hint.solution for hint in own] == [1, 1, 1, 1, 4, 4, 4, 4]
    both = {"include_environment_feedback": True}
    assert [h.feedback for h in hints_of(rewards, 4, told, args_of(tmp_path, **both))] == [
        None,
        None,
        "c",
        "d",
        "e",
        None,
        None,
        "h",
    ]
    alone = both | {"environment_feedback_only_without_solution": True}
    found = hints_of(rewards, 4, told, args_of(tmp_path, **alone))
    assert [h.feedback for h in found] == [None] * 4 + ["e", None, None, None]
    assert [h.is_given for h in hints_of([0] * 4, 4, [None] * 4, args_of(tmp_path))] == [False] * 4


def test_a_prompt_has_the_solution_and_the_feedback(tmp_path):
    args = args_of(
        tmp_path,
        include_environment_feedback=True,
        remove_thinking_from_demonstration=True,
        reprompt_template="{prompt}|{solution}|{feedback}",
        solution_template="<{successful_previous_attempt}>",
        feedback_template="({feedback_raw})",
    )
    texts = ["", "a{x}<think>b</think>c<think>d"]
    assert prompt_with("q{0}", Hint(1, "f"), texts, args) == "q{0}|<a{x}c<think>d>|(f)"
    assert prompt_with("q", Hint(None, "f"), texts, args) == "q||(f)"
    assert without_thoughts("<think>" * 3 + "</think> x ") == "x"
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    assert rewritten(turns, str.upper) == [turns[0], {"role": "user", "content": "Q"}]
    parts = [{"type": "text", "text": "q"}, {"type": "text", "text": "r"}]
    assert rewritten([turns[0], {"role": "user", "content": parts}], str.upper)[-1] == {
        "role": "user",
        "content": "QR",
    }
    with pytest.raises(BadValue, match="expected a message with a text"):
        rewritten([{"role": "user", "content": [{"type": "image"}]}], str.upper)
    with pytest.raises(BadValue, match="a prompt has no message"):
        rewritten([], str.upper)
    with pytest.raises(BadValue, match="ends with a message of the assistant"):
        rewritten([*turns, {"role": "assistant", "content": "a"}], str.upper)


def test_feedback_is_asked_for_with_prompts_completions_and_columns(make):
    asked = []

    def explain(prompts, completions, privileged_context, trainer_state, **_):
        counts = map(len, (prompts, completions, privileged_context))
        asked.append((*counts, trainer_state.global_step))
        return [None if i % 2 else "no" for i in range(len(prompts))]

    batches = []
    trainer = make(
        "SDPO",
        batches=batches,
        trainer={**FAILS, "feedback_funcs": [explain]},
        include_environment_feedback=True,
        max_steps=2,
    )
    trainer.train()
    assert asked == [(8, 8, 8, 0), (8, 8, 8, 1)]
    assert batches[0]["hinted"].tolist() == [1, 0] * 4
    row = trainer.state.log_history[0]
    assert row["self_distillation/feedback_used_fraction"] == 0.5


SAMPLES = Samples(columns={"prompts": ["p", "q"], "completions": ["a", "b"]})


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (["x"], r"returned 1 texts, but 2 were expected: .*sample 0 \(p\)"),
        (["x", 3], r"returned 3 for sample 1 \(q\): expected a text, or None"),
    ],
)
def test_feedback_of_another_length_or_type_stops_with_its_row(output, line):
    with pytest.raises(RewardError, match=line):
        call_feedback([lambda **_: output], SAMPLES, {})


@pytest.mark.parametrize("output", [None, 7, "ab"])
def test_feedback_that_is_no_list_is_an_error(output):
    with pytest.raises(RewardError, match=f"returned {output!r}: expected a list of texts"):
        call_feedback([lambda **_: output], SAMPLES, {})


async def awaited(**_):
    return ["a", "b"]


@pytest.mark.parametrize("functions", [["a"], awaited, [awaited]])
def test_feedback_functions_that_cannot_be_called_are_refused(functions):
    with pytest.raises(BadValue, match="expected a function that returns a list of texts"):
        checked_functions(functions)


def test_no_feedback_functions_are_none():
    assert checked_functions(None) == checked_functions([]) == []


def test_feedback_of_several_functions_is_joined():
    functions = [lambda **_: ["x", None], lambda **_: ["y", " "]]
    assert call_feedback(functions, SAMPLES, {}) == ["x\ny", None]
    functions = [lambda **_: ["x", None], lambda **_: ["y", None]]
    assert call_feedback(functions, SAMPLES, {}) == ["x\ny", None]


def test_the_columns_of_each_prompt_are_trimmed_on_their_own_left():
    batch = token_batch([[5] * 9, [6] * 7], [[7], [8, 9]], 0, None)
    longer = token_batch([[5] * 3, [6] * 12], [[7], [8, 9]], 0, 16)
    batch |= {
        own: longer[key]
        for own, key in zip(TEACHER_KEYS, ("prompt_ids", "prompt_mask"), strict=True)
    }
    trimmed = trim({key: rows[:1] for key, rows in batch.items()})
    assert {key: rows.size(1) for key, rows in trimmed.items()} == {
        "prompt_ids": 9,
        "prompt_mask": 9,
        "completion_ids": 1,
        "completion_mask": 1,
        "teacher_prompt_ids": 3,
        "teacher_prompt_mask": 3,
    }
    assert torch.equal(for_teacher(trimmed)["prompt_ids"], trimmed["teacher_prompt_ids"])
    assert for_teacher({"prompt_ids": 1}) == {"prompt_ids": 1}


@pytest.mark.parametrize("name", ["SDFT", "SDPO"])
def test_a_prompt_of_the_teacher_that_does_not_fit_is_refused_with_its_row(name, make):
    limit = {"SDFT": "max_prompt_length", "SDPO": "max_reprompt_len"}[name]
    with pytest.raises(
        BadValue, match=rf"prompt '\d\d\+\d\d=.* tokens, and {limit} is 7: raise it"
    ):
        make(name, **{limit: 7}).train()


BOTH = (
    ({"distillation_alpha": 1.5}, "distillation_alpha=1.5: expected 0 to 1"),
    ({"teacher_update_rate": -0.1, "teacher_model_kind": "ema"}, "teacher_update_rate=-0.1"),
    ({"distillation_mode": "sampled_token", "distillation_alpha": 0.5}, "distillation_alpha=1.0"),
    ({**SHARED, "distillation_alpha": 0.5}, "distillation_mode='sampled_completion'"),
    ({"distillation_mode": "top"}, "distillation_mode='top'"),
    ({"teacher_model_kind": "live", "teacher_update_rate": 0.5}, "only 'ema': leave it out"),
    ({"distillation_mode": "full_logits", "distillation_add_tail": True}, "only 'topk_logits'"),
    ({"use_teacher_server": True}, "use_teacher_server"),
    ({"sync_ref_model": True}, "sync_ref_model"),
    ({"rollout_policy": "reference"}, "rollout_policy"),
    ({"distillation_topk": 0, "distillation_mode": "topk_logits"}, "distillation_topk=0"),
)
REFUSED = {
    "SDFT": (
        *BOTH,
        ({"teacher_prompt_template": "{prompt}"}, "expected {prompt} and {privileged_context}"),
        ({"teacher_prompt_template": "{prompt}{x}{privileged_context}"}, "and no other field"),
        ({"teacher_prompt_template": "{prompt"}, "expected '}'"),
        ({"num_loss_tokens_to_skip": -1}, "num_loss_tokens_to_skip=-1"),
        ({"distillation_topk": None}, "needs distillation_topk"),
        ({"reward_weights": [1.0]}, "reward_weights"),
    ),
    "SDPO": (
        *BOTH,
        ({"distillation_weight": 2.0}, "distillation_weight=2.0: expected 0 to 1"),
        ({"epsilon": 0.1}, "epsilon=0.1 is of a loss with weight 0"),
        ({"loss_type": "grpo"}, "loss_type='grpo' is of a loss with weight 0"),
        ({"distillation_weight": 0.0, "teacher_model_kind": "base"}, "of a loss with weight 0"),
        ({"distillation_weight": 0.5, "normalize": "token"}, "normalize='token'"),
        ({"use_successful_as_teacher": False}, "is shown nothing more"),
        ({"feedback_template": "{feedback_raw}!"}, "include_environment_feedback=False"),
        (
            {
                "use_successful_as_teacher": False,
                "include_environment_feedback": True,
                "success_reward_threshold": 0.5,
            },
            "use_successful_as_teacher=False",
        ),
        ({"solution_template": "x"}, "expected {successful_previous_attempt}"),
        ({"beta": 0.1}, "beta"),
        ({"distillation_mode": "topk_logits"}, "needs distillation_topk"),
        ({"diagnostics_warning_interval": 3}, "diagnostics_warning_interval"),
        ({"semantics": "paper"}, "semantics"),
    ),
}


@pytest.mark.parametrize(
    ("name", "settings", "line"),
    [(name, *row) for name, rows in REFUSED.items() for row in rows],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_settings_without_an_effect_are_refused(name, settings, line, tmp_path):
    with pytest.raises(BadValue, match=escape(line)):
        getattr(core, f"{name}Config")(output_dir=str(tmp_path), **QUIET | settings)


def test_a_setting_of_rollouts_is_taken_beside_a_policy_loss_of_weight_zero(tmp_path):
    assert args_of(tmp_path, use_transformers_paged=True).rollout_engine == "hf-cb"


def test_data_without_what_the_teacher_is_shown_is_refused(make):
    with pytest.raises(BadValue, match="add a column 'privileged_context'"):
        make("SDFT", data=sums())
    empty = Dataset.from_dict({"prompt": ["a", "b"], "privileged_context": ["x", None]})
    with pytest.raises(BadValue, match="row 1 of train_dataset has no privileged_context"):
        make("SDFT", data=empty)
    with pytest.raises(BadValue, match="feedback_funcs with include_environment_feedback=False"):
        make("SDPO", trainer={"feedback_funcs": [print]})


@pytest.mark.parametrize("name", ["SDFT", "SDPO"])
def test_more_tokens_than_the_vocabulary_has_are_refused_at_the_door(name, make):
    top = {"distillation_mode": "topk_logits", "distillation_topk": 65}
    with pytest.raises(BadValue, match="top-k of 65 without a tail: expected 2 to 64"):
        make(name, **top)
    with pytest.raises(BadValue, match="top-k of 1 without a tail"):
        make(name, **top | {"distillation_topk": 1})


def test_settings_and_the_teacher_are_attributes_as_in_trl(make):
    for name, length in (("SDFT", 512), ("SDPO", 512)):
        trainer = make(name)
        assert trainer.teacher_model is trainer.teacher.model
        assert trainer.max_prompt_length == trainer.args.max_prompt_length == length


def test_one_completion_of_a_prompt_is_enough_without_advantages(make):
    told = {"feedback_funcs": lambda completions, **_: ["x"] * len(completions)}
    settings = {"num_generations": 1, "include_environment_feedback": True, "max_steps": 1}
    settings |= {"use_successful_as_teacher": False}
    trainer = make("SDPO", trainer=told, distillation_weight=1.0, **settings)
    trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["self_distillation/feedback_used_fraction"] == 1
    assert logged["self_distillation/group_reward_std_mean"] == 0
    with pytest.raises(BadValue, match="num_generations=1: advantage_estimator='group' compares"):
        make("SDPO", trainer=told, distillation_weight=0.5, **settings)


@pytest.mark.parametrize("streams", [False, True])
def test_what_the_teacher_is_shown_is_no_unused_column(streams, make):
    trained = []
    for unused in (False, True):
        data = hinted("7").to_iterable_dataset() if streams else hinted("7")
        trainer = make("SDFT", data=data, remove_unused_columns=unused, max_steps=2)
        trainer.train()
        trained.append(weights(trainer.model))
    assert torch.equal(*trained)


def test_a_context_is_of_texts_alone():
    asked = {"prompt": "q"}
    for content in ("hint", [{"type": "text", "text": "hi"}, {"type": "text", "text": "nt"}]):
        context = [{"role": "user", "content": content}, {"role": "user", "content": None}]
        assert context_text({**asked, "privileged_context": context}) == "hint"
    for context in (["a", "b"], [{"role": "user", "content": [{"type": "image"}]}]):
        with pytest.raises(BadValue, match=r"a message of privileged_context is .*: expected a"):
            context_text({**asked, "privileged_context": context})


def test_messages_are_shown_line_by_line(make):
    turns = [{"role": "user", "content": "1+1="}]
    shown = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    data = Dataset.from_dict({"prompt": [turns] * 8, "privileged_context": [shown] * 8})
    trainer = make("SDFT", data=data, max_steps=1)
    assert trainer.hinted([data[0]]) == [[{"role": "user", "content": "1+1=\n\none\ntwo"}]]
    trainer.train()
    assert trainer.state.log_history[0]["loss"] > 0
