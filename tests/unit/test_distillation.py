"""Laws of trainers with a teacher: their samples, the divisor of the loss, both models' inputs."""

import copy

import pytest
import torch
from datasets import Dataset
from grpo_runs import double, logs, weights
from lora_models import lora
from teacher_runs import QUIET, SINGLE, SPLITS, by_hand, sums
from transformers import GPT2Config, GPT2LMHeadModel

import core
from core.collect.generation import Generated
from core.distillation.weighted_tokens import surrogate, within_part
from core.forward import head, micro_pieces, two_heads
from core.forward.batches import token_batch, trained_mask
from core.forward.two_heads import Head, entropy_of, head_numbers, token_numbers
from core.losses.divergence import divergence
from core.losses.token_weights import position_weights
from eval.errors import BadValue

NAMES = ("Distillation", "GKD", "GOLD", "IWOPD")
OWN = {
    "Distillation": {},
    "GKD": {"lmbda": 1.0},
    "GOLD": {"lmbda": 1.0},
    "IWOPD": {"top_p": 1.0},
}
BETAS = (0.0, 0.3, 1.0)


@pytest.fixture
def make(build_llama, tiny_tokenizer, tmp_path):
    """Return a builder of trainers; `rollouts` collects the samples, `plays` replaces them."""

    def build(name, model=None, teacher=None, *, rollouts=None, plays=None, **changes):
        class Ours(getattr(core, f"{name}Trainer")):
            def generate(self, prompts):
                generated = super().generate(prompts) if plays is None else next(played)
                if rollouts is not None:
                    rollouts.append(generated)
                return generated

        played = iter(plays or ())
        data, peft_config = changes.pop("data", None), changes.pop("peft_config", None)
        tokenizer = changes.pop("tokenizer", tiny_tokenizer)
        settings = QUIET | OWN[name] | changes
        return Ours(
            model or build_llama(),
            teacher or build_llama(seed=1),
            args=getattr(core, f"{name}Config")(output_dir=str(tmp_path), **settings),
            train_dataset=sums() if data is None else data,
            processing_class=tokenizer,
            peft_config=peft_config,
        )

    return build


def of_lengths(tokenizer, *lengths):
    """Completions of these lengths for prompts of one length."""
    completions = [[7 + (3 * row + i) % 50 for i in range(n)] for row, n in enumerate(lengths)]
    prompts = [[6, 8 + row, 9] for row in range(len(lengths))]
    texts = tokenizer.batch_decode(completions)
    return Generated(prompt_ids=prompts, completion_ids=completions, completions=texts)


@pytest.mark.parametrize("name", NAMES)
def test_training_moves_the_student_and_logs_what_trl_logs(name, make):
    trainer = make(name, gradient_accumulation_steps=2)
    start, teacher = weights(trainer.model).clone(), weights(trainer.teacher.model).clone()
    trainer.train()
    assert (weights(trainer.model) - start).abs().max() > 1e-4
    assert torch.equal(weights(trainer.teacher.model), teacher)
    rows = [row for row in trainer.state.log_history if "loss" in row]
    assert len(rows) == 3
    for row in rows:
        assert row.keys() >= {"entropy", "on_policy_loss", "num_tokens", "completions/mean_length"}
        assert row["loss"] == pytest.approx(row["on_policy_loss"], rel=0.2)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of peft and transformers
def test_a_teacher_with_adapters_is_the_model_that_they_make(make, build_llama):
    from peft import LoraConfig, PrefixTuningConfig, get_peft_model

    adapted = get_peft_model(
        build_llama(seed=1), LoraConfig(init_lora_weights=False, target_modules=["q_proj"])
    )
    merged = copy.deepcopy(adapted).merge_and_unload()
    losses = []
    for teacher in (adapted, merged):
        trainer = make("GKD", teacher=teacher, lmbda=0.0, data=sums(), max_steps=1)
        trainer.train()
        losses += logs(trainer, "loss")
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    virtual = PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    with pytest.raises(BadValue, match="adapters of virtual tokens"):
        make("GKD", teacher=get_peft_model(build_llama(seed=1), virtual))
    with pytest.raises(BadValue, match="teacher_model is a dict: expected a model, or the name"):
        make("GKD", teacher={"a": 1})


def test_a_teacher_may_be_named_twice_alike(make, build_llama, tmp_path, tiny_tokenizer):
    folder, other = str(tmp_path / "teacher"), str(tmp_path / "other")
    build_llama(seed=1).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    settings = {"teacher_model_name_or_path": folder}
    make("Distillation", teacher=folder, **settings)
    with pytest.raises(BadValue, match="there are two teachers"):
        make("Distillation", teacher=other, **settings)
    with pytest.raises(BadValue, match=r"the keywords {'zzz': 1} may not fit: .* unreadable"):
        make("Distillation", teacher=folder, teacher_model_init_kwargs={"zzz": 1})
    for name in ("dtype", "torch_dtype"):
        keywords = {"teacher_model_init_kwargs": {name: "bfloat16"}}
        trainer = make("Distillation", teacher=folder, **keywords)
        assert trainer.teacher.model.dtype == torch.bfloat16


@pytest.mark.parametrize("formatted", [None, "numpy"])
def test_conversations_are_read_alike_wherever_they_are_given(formatted, make):
    pairs = sums()
    spoken = [
        {
            "messages": [
                {"role": "user", "content": row["prompt"]},
                {"role": "assistant", "content": row["completion"]},
            ]
        }
        for row in pairs.to_list()
    ]
    chats = Dataset.from_list(spoken).with_format(formatted)
    trainer = make("GKD", lmbda=0.0, data=chats)
    found = [trainer.evaluate(rows)["eval_loss"] for rows in (chats, trainer.train_dataset)]
    found.append(trainer.predict(chats).metrics["test_loss"])
    found.append(trainer.evaluate({"a": chats})["eval_a_loss"])
    beside = chats.add_column("prompt", ["other"] * len(chats))
    found.append(make("GKD", lmbda=0.0, data=beside).evaluate(chats)["eval_loss"])
    assert found == [pytest.approx(found[0], rel=1e-6)] * 5


def test_keywords_of_a_chat_template_act_on_completions_of_the_data(make, tiny_tokenizer):
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.chat_template = "{{ mark }}" + tokenizer.chat_template
    turns = [[{"role": role, "content": "12"}] for role in ("user", "assistant")]
    row = dict(zip(("prompt", "completion"), turns, strict=True))
    counts = []
    for own, shared in (({}, {}), ({}, {"mark": "abc"}), ({"mark": "a"}, {"mark": "abc"})):
        data = Dataset.from_list([{**row, **({"chat_template_kwargs": own} if own else {})}] * 8)
        settings = {"chat_template_kwargs": shared, "tokenizer": tokenizer, "max_steps": 1}
        trainer = make("GKD", lmbda=0.0, data=data, **settings)
        trainer.train()
        counts.append(logs(trainer, "num_tokens")[0] / 8)
    assert [count - counts[0] for count in counts] == [0, 3, 1]


@pytest.mark.parametrize("name", NAMES)
def test_settings_and_the_teacher_are_attributes_as_in_trl(name, make):
    trainer = make(name)
    assert trainer.teacher_model is trainer.teacher.model
    assert (trainer.temperature, trainer.num_generations) == (trainer.args.temperature, 1)
    assert trainer.max_completion_length == 12
    with pytest.raises(BadValue, match=rf"cannot be set to 7: .* {name}Config.max_completion_len"):
        trainer.max_completion_length = 7


@pytest.mark.parametrize("name", NAMES)
def test_a_method_of_trl_that_is_not_called_is_refused(name):
    kind = getattr(core, f"{name}Trainer")
    with pytest.raises(BadValue, match="_generate would never be called here: override generate"):
        type("Mine", (kind,), {"_generate": lambda *_: None})


@pytest.mark.parametrize("name", NAMES)
def test_an_order_of_prompts_that_is_not_there_is_refused(name, make):
    for order in ("sequential", "group_by_length"):
        with pytest.raises(BadValue, match=r"train_sampling_strategy=.*shuffle_dataset=False"):
            make(name, train_sampling_strategy=order)


def test_the_order_of_prompts_is_that_of_the_data_seed(make):
    own, other, same = (
        list(make("Distillation", **seeds)._get_train_sampler())
        for seeds in ({}, {"data_seed": 7}, {"seed": 7})
    )
    assert own != other == same


def test_a_prompt_without_a_message_is_refused(make):
    with pytest.raises(BadValue, match=r"a prompt is \[\]: expected a text or a list"):
        make("Distillation", data=Dataset.from_dict({"prompt": [[]] * 8})).train()


@pytest.mark.parametrize("beta", BETAS)
def test_the_loss_is_the_mean_divergence_over_tokens(beta, make, build_llama):
    rollouts, temperature = [], 1.4
    trainer = make(
        "Distillation", rollouts=rollouts, max_steps=1, beta=beta, temperature=temperature
    )
    trainer.train()
    student, teacher = build_llama(), build_llama(seed=1)
    with torch.no_grad():
        apart = by_hand(
            student, teacher, rollouts[0], lambda s, t: divergence(s, t, beta), temperature
        )
        entropy = by_hand(student, teacher, rollouts[0], lambda s, _: entropy_of(s), temperature)
    assert logs(trainer, "loss") == [pytest.approx(apart.mean().item(), rel=1e-5)]
    assert logs(trainer, "entropy") == [pytest.approx(entropy.mean().item(), rel=1e-5)]


def test_a_mean_over_sequences_weighs_each_completion_alike(make, build_llama, tiny_tokenizer):
    played = of_lengths(tiny_tokenizer, 12, 3, 11, 12, 5, 10, 2, 12)
    trainer = make("GKD", plays=[played], max_steps=1, normalize="sequence")
    trainer.train()
    with torch.no_grad():
        apart = by_hand(
            build_llama(), build_llama(seed=1), played, lambda s, t: divergence(s, t, 0.5)
        )
    means = [part.mean() for part in apart.split([len(ids) for ids in played.completion_ids])]
    assert logs(trainer, "loss") == [pytest.approx(torch.stack(means).mean().item(), rel=1e-5)]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", NAMES)
def test_a_split_changes_no_update(name, split, make, build_llama, tiny_tokenizer, monkeypatch):
    """The divisor is the number of trained tokens of the optimizer step."""
    plays = [of_lengths(tiny_tokenizer, 12, 3, 11, 12, 5, 10, 2, 12)]
    pair = double(build_llama()), double(build_llama(seed=1))
    whole = make(name, *copy.deepcopy(pair), plays=plays, max_steps=1)
    whole.train()
    if split == "in pieces":
        monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 1)
    other = make(name, *copy.deepcopy(pair), plays=plays, max_steps=1, **SPLITS[split])
    other.train()
    assert (weights(whole.model) - weights(other.model)).abs().max() < SINGLE
    assert (weights(whole.model) - weights(pair[0])).abs().max() > 1e-5
    assert logs(other, "loss") == pytest.approx(logs(whole, "loss"), rel=1e-6)


def numbers_of(student, teacher, beta=0.3, chunk=None, monkeypatch=None):
    """Numbers of 9 tokens, and the gradients by the student's states and weight."""
    if chunk is not None:
        monkeypatch.setattr(head, "CHUNK", chunk)
    leaves = [x.clone().requires_grad_() for x in student]
    tokens = torch.arange(9)
    measure = lambda s, t, _: torch.stack([entropy_of(s), divergence(s, t, beta)], -1)  # noqa: E731
    numbers = head_numbers(Head(*leaves), teacher, tokens, 0.7, measure)
    (numbers[:, 1] * torch.linspace(0.1, 1, 9)).sum().backward()
    return numbers.detach(), *(x.grad for x in leaves)


def drawn(width, vocabulary, seed):
    draw = torch.Generator().manual_seed(seed)
    sizes = (9, width), (vocabulary, width)
    return Head(*(torch.randn(*size, generator=draw, dtype=torch.float64) for size in sizes))


@pytest.mark.parametrize("chunk", [1, 40, 2**23])
@pytest.mark.parametrize("beta", BETAS)
def test_any_chunk_size_has_one_loss_and_the_gradient_of_all_logits(beta, chunk, monkeypatch):
    student, teacher = drawn(4, 17, 0), drawn(6, 17, 1)
    found = numbers_of(student, teacher, beta, chunk, monkeypatch)
    leaves = [x.clone().requires_grad_() for x in student]
    pair = ((Head(*x).hidden @ Head(*x).weight.T / 0.7).log_softmax(-1) for x in (leaves, teacher))
    apart = divergence(*pair, beta)
    (apart * torch.linspace(0.1, 1, 9)).sum().backward()
    assert torch.allclose(found[0][:, 1], apart.detach(), rtol=0, atol=1e-12)
    for mine, leaf in zip(found[1:], leaves, strict=True):
        assert torch.allclose(mine, leaf.grad, rtol=0, atol=1e-12)


def test_heads_of_two_sizes_are_compared_on_the_tokens_of_both():
    student, teacher = drawn(4, 17, 0), drawn(6, 17, 1)
    longer = teacher._replace(weight=torch.cat([teacher.weight, torch.ones(3, 6)]).double())
    for mine, other in zip(numbers_of(student, longer), numbers_of(student, teacher), strict=True):
        assert torch.equal(mine, other)


def measure(logps, teacher_logps, tokens):
    return torch.stack(
        [divergence(logps, teacher_logps, 0.5), logps[range(len(tokens)), tokens]], 1
    )


def test_packed_and_padded_rows_have_the_same_numbers(build_llama, monkeypatch):
    student, teacher = double(build_llama()), double(build_llama(seed=1, hidden_size=48))
    batch = token_batch([[5, 6], [7], [5, 6]], [[8, 9, 10], [11], [12, 13]], 0, None)
    other = token_batch([[9], [4, 4, 4], [9, 9]], [[8, 9, 10], [11], [12, 13]], 0, 4)
    for teacher_batch in (batch, other):
        packed = token_numbers(student, teacher, batch, teacher_batch, 0.9, measure)
        with monkeypatch.context() as patch:
            patch.setattr(two_heads, "can_pack", lambda *_: False)
            padded = token_numbers(student, teacher, batch, teacher_batch, 0.9, measure)
        assert torch.allclose(packed, padded, rtol=0, atol=SINGLE)
        assert (packed * (1 - batch["completion_mask"]).unsqueeze(-1) == 0).all()
    same = token_numbers(student, teacher, batch, batch, 0.9, measure)
    assert (same - packed)[..., 0].abs().max() > 1e-3  # the teacher's prompt matters


@pytest.mark.parametrize("padding", [None, 8, 32])
@pytest.mark.parametrize("name", NAMES)
def test_a_teacher_equal_to_the_student_has_a_loss_of_zero(name, padding, make, build_llama):
    trainer = make(name, build_llama(), build_llama(), max_steps=1, pad_to_multiple_of=padding)
    start = weights(trainer.model).clone()
    trainer.train()
    assert logs(trainer, "loss") == [pytest.approx(0.0, abs=1e-7)]
    assert (weights(trainer.model) - start).abs().max() < 1e-6


def test_a_teacher_has_no_dropout_while_its_student_has(make, build_llama):
    settings = {"attention_dropout": 0.5}
    read = []
    trainer = make("Distillation", build_llama(**settings), build_llama(seed=1, **settings))
    whole = trainer.measure

    def kept(logps, teacher_logps, tokens):
        read.append((logps.detach(), teacher_logps.detach()))
        return whole(logps, teacher_logps, tokens)

    trainer.measure, trainer.args.max_steps = kept, 1
    batch = token_batch([[5, 6]] * 2, [[8, 9, 10]] * 2, 0, None)
    for _ in range(2):
        token_numbers(trainer.model.train(), trainer.teacher.model, batch, batch, 1.0, kept)
    (student, teacher), (again, same) = read
    assert torch.equal(teacher, same)
    assert not torch.equal(student, again)


def test_an_end_token_that_is_the_padding_token_is_trained(make, tiny_tokenizer):
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.pad_token, end = tokenizer.eos_token, tokenizer.eos_token_id
    played = Generated(
        prompt_ids=[[5, 6]] * 8, completion_ids=[[8, end]] * 8, completions=["8"] * 8
    )
    trainer = make("Distillation", plays=[played], max_steps=1, tokenizer=tokenizer)
    batch = trainer.tensors(played)
    assert trained_mask(batch).sum() == 16
    trainer.train()
    assert logs(trainer, "completions/mean_length") == [2]


def test_lambda_is_the_share_of_rollouts_that_the_student_samples(make):
    trainer = make("GKD", lmbda=0.3)
    trainer.model.train()
    draws = []
    for trainer._rollouts in range(2000):
        draws.append(trainer.is_sampled_by_student())
    assert abs(sum(draws) / 2000 - 0.3) < 0.05  # 4.9 standard errors
    assert draws != sorted(draws)


@pytest.mark.parametrize("name", ["GKD", "IWOPD"])
def test_other_rollouts_are_the_completions_of_the_data(name, make, build_llama, tiny_tokenizer):
    settings = {} if name == "GKD" else {"distillation_objective": "jsd", "loss_top_k": 0}
    data = Dataset.from_dict({"prompt": ["1+1="] * 8, "completion": ["23"] * 8})
    trainer = make(name, lmbda=0.0, beta=0.5, max_steps=1, data=data, **settings)
    trainer.train()
    ids = tiny_tokenizer(["1+1=", "23"])["input_ids"]
    played = Generated(
        prompt_ids=[ids[0]],
        completion_ids=[[*ids[1], tiny_tokenizer.eos_token_id]],
        completions=["23"],
    )
    with torch.no_grad():
        apart = by_hand(
            build_llama(), build_llama(seed=1), played, lambda s, t: divergence(s, t, 0.5)
        )
    assert logs(trainer, "off_policy_loss") == [pytest.approx(apart.mean().item(), rel=1e-5)]
    assert logs(trainer, "on_policy_loss") == []
    assert logs(trainer, "completions/mean_length") == [3]


def test_conversations_are_cut_before_their_last_answer(make):
    turns = [{"role": "user", "content": "1+1="}, {"role": "assistant", "content": "2"}]
    both = make("GKD", lmbda=0.0, max_steps=1, data=Dataset.from_dict({"messages": [turns] * 8}))
    both.train()
    split = Dataset.from_dict({"prompt": [turns[:1]] * 8, "completion": [turns[1:]] * 8})
    other = make("GKD", lmbda=0.0, max_steps=1, data=split)
    other.train()
    assert logs(both, "loss") == logs(other, "loss")
    assert logs(both, "num_tokens") == logs(other, "num_tokens")


def test_the_teacher_samples_the_other_rollouts_of_sequence_level_distillation(make, build_llama):
    rollouts = []
    trainer = make("GKD", lmbda=0.0, seq_kd=True, max_steps=1, temperature=1.0)
    taught = trainer.given_or_taught
    trainer.given_or_taught = lambda rows: rollouts.append(taught(rows)) or rollouts[-1]
    trainer.train()
    own = make("GKD", build_llama(seed=1), build_llama(), rollouts=rollouts, temperature=1.0)
    own.args.max_steps = 1
    own.train()
    assert rollouts[0].completion_ids == rollouts[1].completion_ids
    assert logs(trainer, "off_policy_loss") == pytest.approx(logs(trainer, "loss"))


def test_evaluation_reads_the_data_unless_the_student_samples_all(make):
    for lmbda, length in ((0.5, 3), (1.0, 12)):
        trainer = make("GKD", lmbda=lmbda, per_device_eval_batch_size=4)
        metrics = trainer.evaluate(sums(8).select([5, 6, 7, 5]))
        assert metrics["eval_completions/max_length"] == length
        assert metrics["eval_loss"] > 0


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("total", ["all", "without_last"])
def test_weights_multiply_the_advantages_of_sampled_tokens(total, signed, make, build_llama):
    rollouts, gamma = [], 0.7
    settings = {"iw_opd_gamma": gamma, "iw_opd_total": total, "iw_opd_signed": signed}
    trainer = make("IWOPD", rollouts=rollouts, max_steps=1, **settings)
    trainer.train()
    student, teacher, losses = build_llama(), build_llama(seed=1), []
    rows = zip(rollouts[0].prompt_ids, rollouts[0].completion_ids, strict=True)
    for prompt, ids in rows:
        one = Generated(prompt_ids=[prompt], completion_ids=[ids], completions=[""])
        with torch.no_grad():
            pair = by_hand(student, teacher, one, lambda s, t: torch.stack([s, t]).transpose(0, 1))
        own, other = (x[range(len(ids)), list(ids)] for x in pair.unbind(1))
        advantages = other - own
        before = torch.tensor(
            [
                abs(sum(advantages[:i])) if signed else sum(advantages[:i].abs())
                for i in range(len(ids))
            ]
        )
        counted = advantages if total == "all" else advantages[:-1]
        w = 1 + gamma * (1 - before / counted.abs().sum().clamp(min=1e-8))
        losses += (-own * advantages * w).tolist()
    assert logs(trainer, "loss") == [pytest.approx(sum(losses) / len(losses), rel=1e-4)]
    assert logs(trainer, "iw_opd/max_weight") == [pytest.approx(1 + gamma)]


def test_signed_sums_cancel():
    advantages, mask = torch.tensor([[1.0, -1.0, 1.0, -1.0]]), torch.ones(1, 4)
    signed = position_weights(advantages, mask, 0.5, "all", signed=True)
    assert signed.tolist() == [[1.5, 1.375, 1.5, 1.375]]
    assert position_weights(advantages, mask, 0.5, "all").tolist() == [[1.5, 1.375, 1.25, 1.125]]


@pytest.mark.parametrize(("part", "trained"), [([0.0, 0.3], 3), ([0.7, 1.0], 3), (None, 10)])
def test_a_part_of_each_completion_is_trained(part, trained, make, tiny_tokenizer):
    played = of_lengths(tiny_tokenizer, *[10] * 8)
    batch = make("IWOPD", loss_positions=part).tensors(played)
    mask = trained_mask(batch)
    assert mask.sum(1).tolist() == [trained] * 8
    if part:
        assert mask[0].nonzero().flatten().tolist() == list(
            range(int(10 * part[0]), int(10 * part[1]))
        )


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.1, 2.0, 6.0])
@pytest.mark.parametrize("advantage", [-2.0, 2.0])
def test_the_clipped_surrogate_is_that_of_its_formula(advantage, ratio, tmp_path):
    args = core.IWOPDConfig(
        str(tmp_path), use_cpu=True, bf16=False, epsilon=0.2, dual_clip=3.0, num_iterations=2
    )
    old = torch.tensor([[-1.0]])
    logps = (old + torch.tensor(ratio).log()).requires_grad_()
    value = surrogate(logps, old, torch.tensor([[advantage]]), args)
    least = min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
    expected = max(least, 3.0 * advantage) if advantage < 0 else least
    assert value.item() == pytest.approx(expected, rel=1e-5)
    value.backward()
    stopped = ratio > 1.2 if advantage > 0 else ratio < 0.8 or ratio > 3.0
    assert (logps.grad.item() == 0) == stopped


def test_a_ratio_to_the_student_that_sampled_is_kept_for_all_updates_of_a_rollout(make):
    clipped = make("IWOPD", epsilon=0.0, num_iterations=2, max_steps=2, learning_rate=1.0)
    clipped.train()
    free = make("IWOPD", num_iterations=2, max_steps=2, learning_rate=1.0)
    free.train()
    norms, others = (logs(trainer, "grad_norm") for trainer in (clipped, free))
    assert norms[0] == pytest.approx(others[0], rel=1e-4)  # a ratio of 1
    assert norms[1] < 0.9 * others[1]


@pytest.mark.parametrize(
    ("settings", "support"),
    [
        ({"beta": 1.0, "loss_top_k": 1}, 1),
        ({"beta": 0.0, "loss_top_k": 3}, 3),
        ({"beta": 1.0, "loss_top_k": 3}, 3),
        ({"beta": 0.5, "loss_top_k": 2}, None),
        ({"beta": 0.5, "loss_top_k": 0}, 64),
    ],
    ids=str,
)
def test_a_divergence_on_chosen_tokens_is_at_most_that_on_all(settings, support, make):
    trainer = make("IWOPD", distillation_objective="jsd", **settings)
    draw = torch.Generator().manual_seed(0)
    pair = [torch.randn(5, 64, generator=draw).log_softmax(-1) for _ in range(2)]
    tokens = torch.arange(5)
    student, teacher = trainer.on_chosen_tokens(*pair, tokens)
    counts = student[:, :64].isfinite().sum(1)
    assert support is None or counts.tolist() == [support] * 5
    assert torch.allclose(student.exp().sum(1), torch.ones(5))
    assert (divergence(student, teacher, 0.5) <= divergence(*pair, 0.5) + 1e-6).all()


def test_adapters_are_trained_and_the_teacher_has_none(make):
    trainer = make("Distillation", peft_config=lora(), max_steps=2, learning_rate=1.0)
    start = {n: p.clone() for n, p in trainer.model.named_parameters() if p.requires_grad}
    trainer.train()
    assert all("lora" in name for name in start)
    assert not any("lora" in name for name, _ in trainer.teacher.model.named_parameters())
    assert any(
        (p - start[n]).abs().max() > 0 for n, p in trainer.model.named_parameters() if n in start
    )


def test_a_teacher_of_other_tokens_is_refused_with_the_first_that_differs(
    make, build_llama, tiny_tokenizer, tmp_path
):
    folder = tmp_path / "teacher"
    build_llama(seed=1).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    make("GKD", teacher=str(folder))
    text = (folder / "tokenizer.json").read_text()
    swapped = text.replace('"7": ', '"T": ').replace('"8": ', '"7": ').replace('"T": ', '"8": ')
    assert swapped != text
    (folder / "tokenizer.json").write_text(swapped)
    with pytest.raises(BadValue, match="for the student and '8' for the teacher"):
        make("GKD", teacher=str(folder))


@pytest.mark.parametrize("rows", [60, 72])
def test_a_teacher_is_never_resized(rows, make, build_llama):
    teacher = build_llama(seed=1, vocab_size=rows)
    if rows < 64:
        with pytest.raises(BadValue, match="the teacher's head has 60 rows for 64 tokens"):
            make("Distillation", teacher=teacher)
    else:
        trainer = make("Distillation", teacher=teacher, max_steps=1)
        trainer.train()
        assert trainer.teacher.model.lm_head.weight.shape[0] == rows


def test_other_architectures_are_read_without_packing(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        teacher = GPT2LMHeadModel(
            GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2, n_positions=64)
        )
    rollouts = []
    trainer = make("Distillation", teacher=teacher, rollouts=rollouts, max_steps=1)
    student = copy.deepcopy(trainer.model)
    trainer.train()
    with torch.no_grad():
        apart = by_hand(student, teacher, rollouts[0], lambda s, t: divergence(s, t, 1.0))
    assert logs(trainer, "loss") == [pytest.approx(apart.mean().item(), rel=1e-4)]


@pytest.mark.parametrize(
    ("name", "settings", "line"),
    [
        ("Distillation", {"beta": 1.5}, r"DistillationConfig.beta=1.5: expected 0 to 1"),
        ("Distillation", {"lmbda": 0.5}, "GKDConfig has lmbda"),
        ("Distillation", {"estimator": "sampled", "beta": 0.5}, "sampled tokens give the reverse"),
        ("Distillation", {"estimator": "sampled", "num_iterations": 2}, "several updates for each"),
        ("Distillation", {"max_tool_calling_iterations": 2}, "tools are not supported"),
        ("Distillation", {"reward_weights": [1.0]}, "completions have no rewards"),
        ("GKD", {"lmbda": -0.1}, r"GKDConfig.lmbda=-0.1: expected 0 to 1"),
        ("GKD", {"packing": True}, "rows are packed"),
        ("GKD", {"seq_kd": True, "lmbda": 1.0}, "the student samples every rollout"),
        ("GKD", {"max_new_tokens": 4, "max_completion_length": 5}, "two names of one setting"),
        ("IWOPD", {"loss_top_k": 2}, "is no setting of distillation_objective='iw_opd'"),
        ("IWOPD", {"lmbda": 0.5}, "is no setting of distillation_objective='iw_opd'"),
        (
            "IWOPD",
            {"distillation_objective": "jsd", "loss_add_tail": False},
            "the loss is always 0",
        ),
        ("IWOPD", {"loss_positions": [0.5, 0.2]}, "expected two shares"),
        ("IWOPD", {"loss_positions": [0.0, 0.3, 0.5]}, "expected two shares"),
        ("IWOPD", {"loss_positions": []}, "expected two shares"),
        ("IWOPD", {"iw_opd_epsilon": 0.0}, "expected above 0"),
        ("IWOPD", {"dual_clip": 3.0}, "dual_clip without epsilon"),
        (
            "IWOPD",
            {
                "distillation_objective": "jsd",
                "loss_top_k": 3,
                "reverse_kl_top_1_mode": "argmax",
            },
            "it chooses a single token",
        ),
        (
            "IWOPD",
            {"distillation_objective": "jsd", "loss_top_k": 0, "loss_add_tail": False},
            "all tokens have no tail",
        ),
        ("IWOPD", {"use_teacher_server": True}, "a teacher is a model on this machine"),
        ("IWOPD", {"max_length": 8}, "expected at least 1 tokens of the prompt"),
    ],
    ids=str,
)
def test_settings_without_an_effect_are_refused(name, settings, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        getattr(core, f"{name}Config")(str(tmp_path), use_cpu=True, bf16=False, **settings)


def test_bad_input_is_refused_before_anything_is_loaded(make, build_llama, tmp_path):
    prompts = sums().remove_columns("completion")
    with pytest.raises(BadValue, match="train_dataset has the columns prompt, and lmbda below 1"):
        make("GKD", "nowhere/student", "nowhere/teacher", data=prompts, lmbda=0.5)
    gap = Dataset.from_dict({"prompt": ["1+1=", "2+2="], "completion": ["2", ""]})
    with pytest.raises(BadValue, match="row 1 of train_dataset has no completion"):
        make("GKD", "nowhere/student", "nowhere/teacher", data=gap, lmbda=0.5)
    model = build_llama()
    with pytest.raises(BadValue, match="cannot be the same object"):
        make("GKD", model, model)
    config = core.GKDConfig(str(tmp_path), use_cpu=True, teacher_model_name_or_path="nowhere")
    with pytest.raises(BadValue, match="there are two teachers"):
        core.GKDTrainer(model, model, args=config, train_dataset=sums())
    config = core.GKDConfig(str(tmp_path), use_cpu=True)
    with pytest.raises(BadValue, match="there is no teacher"):
        core.GKDTrainer(model, args=config, train_dataset=sums())
    with pytest.raises(BadValue, match=r"DistillationTrainer\(tools=...\) is not supported"):
        core.DistillationTrainer(model, model, tools=[print], train_dataset=sums())


def test_a_token_that_the_head_of_the_teacher_lacks_is_refused(make, build_llama):
    larger = build_llama(vocab_size=90, tie_word_embeddings=False)
    with torch.no_grad():
        larger.lm_head.weight.zero_()
        larger.lm_head.weight[80:] = 10.0  # and no other token is sampled
        larger.lm_head.weight[80:, :16] = -10.0
    with pytest.raises(BadValue, match="and the teacher's head has 64 rows"):
        make("Distillation", larger, max_steps=1, temperature=3.0).train()


def test_more_tokens_than_both_models_have_are_refused_at_the_door(make):
    with pytest.raises(BadValue, match="expected 1 to 64, the size of the vocabulary"):
        make("IWOPD", distillation_objective="jsd", loss_top_k=65)


def test_a_prompt_without_room_for_its_completion_stops_with_its_text(make):
    data = Dataset.from_dict({"prompt": ["1" * 20] * 8, "completion": ["2"] * 8})
    trainer = make("GKD", lmbda=0.0, max_length=20, data=data)
    with pytest.raises(BadValue, match=r"max_length=20 leaves no token .* '1{20}'"):
        trainer.train()


@pytest.mark.parametrize("length", [10, 13, 50, 100, 101])
def test_parts_of_one_share_have_one_number_of_tokens(length):
    mask = torch.ones(1, length, dtype=torch.long)
    counts = [within_part(mask, *part).sum() for part in ([0.0, 0.3], [0.7, 1.0])]
    assert counts[0] == counts[1] == round(0.3 * length)


def test_metrics_of_samples_are_not_those_of_the_data(make):
    trainer = make("GKD", lmbda=0.0, max_steps=1)
    trainer.train()
    assert logs(trainer, "completions/clipped_ratio") == []
    assert logs(trainer, "completions/mean_length") != []
