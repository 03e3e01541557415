"""The same trainer twice, ours and TRL's, on copies of one model; and what makes them comparable.

Two parts of the numerics are single precision whatever the model's: TRL's fused head and the
RMSNorm of transformers. For comparisons in double precision both are replaced by the same
formulas in the model's own precision; nothing else of either side is touched.
"""

import copy
import random
from functools import cache

import torch
import trl
import trl.trainer.utils
from datasets import Dataset

import core

QUIET = {
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_completion_length": 12,
    "num_generations": 4,
    "per_device_train_batch_size": 8,
}
PROMPTS = ["1+2", "12+34=", "x", "7*8-9", "a b", "12345", "4+4", "0"]


class ExactHead:
    """log p(target) and entropy by their definitions, in the precision of the hidden states."""

    @staticmethod
    def apply(hidden, weight, bias, targets, temperature, _chunk, softcap, scale, outputs):
        assert bias is None
        assert softcap is None
        logps = (hidden @ weight.T * scale / temperature).log_softmax(-1)
        entropy = -(logps.exp() * logps).sum(-1) if "entropy" in outputs else None
        right = logps.argmax(-1) == targets if "is_top1" in outputs else None
        return logps.gather(-1, targets[:, None])[:, 0], entropy, None, None, right


def exact_head(monkeypatch):
    """Let TRL compute its log-probabilities in double precision."""
    monkeypatch.setattr(trl.trainer.utils, "_ChunkedLogProbFunction", ExactHead)


def double(model):
    """Turn a Llama to double precision throughout, its norms included."""
    for name, module in list(model.named_modules()):
        if type(module).__name__ == "LlamaRMSNorm":
            norm = torch.nn.RMSNorm(module.weight.numel(), eps=module.variance_epsilon)
            norm.weight = module.weight
            model.set_submodule(name, norm)
    return model.double()


@cache  # a data set is not changed, and its fingerprint takes 5 ms
def prompts(count=8):
    """A dataset of conversations with an answer column, as rewards want it."""
    texts = [PROMPTS[i % len(PROMPTS)] + "=" * (i // len(PROMPTS)) for i in range(count)]
    return Dataset.from_dict(
        {
            "prompt": [[{"role": "user", "content": text}] for text in texts],
            "answer": [str(i) for i in range(count)],
        }
    )


def length_reward(completion_ids, **_):
    """A reward that differs within a group and is not an integer."""
    return [len(ids) / 7 + (ids[0] % 5) / 3 for ids in completion_ids]


def canned(tokenizer, seed=0, longest=12):
    """A rollout function with the same completions at every first, second ... call."""
    draw = random.Random(seed)

    def tokenize(prompt):
        if isinstance(prompt, str):
            return tokenizer(prompt).input_ids
        text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
        return tokenizer(text).input_ids

    def complete():
        ids = [draw.randrange(5, 64) for _ in range(draw.choice([1, 2, 5, longest - 1, longest]))]
        return ids if len(ids) == longest else [*ids, tokenizer.eos_token_id]

    def rollout(prompts, trainer):  # noqa: ARG001 - the callers' signature
        completions = [complete() for _ in prompts]
        completions[1] = completions[0]  # one group with twins
        return {
            "prompt_ids": [tokenize(p) for p in prompts],
            "completion_ids": completions,
            "logprobs": None,
        }

    return rollout


def slices(trainer, batch, *, seed=5):
    """The micro-batches that one rollout yields, in order."""
    if seed is not None:
        torch.manual_seed(seed)
    out = []
    for _ in range(trainer.args.steps_per_generation):
        out.append(trainer._prepare_inputs([dict(row) for row in batch]))
        trainer._step += 1
    return out


def repeated(trainer, count):
    """Rows as the sampler gives them: each prompt once per completion of its group."""
    group = trainer.args.num_generations
    return [trainer.train_dataset[i // group % len(trainer.train_dataset)] for i in range(count)]


def build(
    package,
    model,
    tokenizer,
    folder,
    rewards=length_reward,
    rows=None,
    rollout=None,
    kind=None,
    **changes,
):
    """Make a trainer of `package` (`trl` or `core`), or of `kind`, on a copy of the model."""
    args = package.GRPOConfig(output_dir=str(folder), **QUIET | changes)
    return (kind or package.GRPOTrainer)(
        model=copy.deepcopy(model),
        reward_funcs=rewards,
        args=args,
        train_dataset=rows or prompts(),
        processing_class=tokenizer,
        rollout_func=rollout,
    )


def pair(model, tokenizer, folder, **options):
    """Make our trainer and TRL's with the same arguments."""
    ours, theirs = (build(package, model, tokenizer, folder, **options) for package in (core, trl))
    for trainer in (ours, theirs):
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    return ours, theirs


def shared_metrics(logged):
    """Names of logged values without the metrics that only our trainer has."""
    ours = (
        "completions/repetition",
        "completions/right_mean_length",
        "completions/unique_fraction",
        "completions/wrong_mean_length",
        "frac_all_",
        "health/",
        "/timeouts",
        "/unscored",
        "num_completions",
        "num_effective_prompts",
        "ratio/rare_rise",
        "ratio/sequence_log_std",
        "ratio/token_log_std",
        "sampling/masked_fraction",
    )
    return {name for name in logged if not any(part in name for part in ours)}


def difference(ours, theirs):
    """Largest absolute difference over the largest absolute value; inf where nan or inf differ."""
    ours, theirs = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (ours, theirs))
    assert ours.shape == theirs.shape
    if not torch.equal(ours.isnan(), theirs.isnan()):
        return float("inf")
    ours, theirs = ours.nan_to_num(), theirs.nan_to_num()
    scale = theirs.abs().max().item() if theirs.numel() else 0.0
    return (ours - theirs).abs().max().item() / scale if scale else ours.abs().sum().item()


def gradients(trainer):
    """All gradients of the trainer's model in one vector."""
    return torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
