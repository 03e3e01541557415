"""Online trainers on a tiny model, for the tests of them."""

from grpo_runs import digits, prompts

import core

QUIET = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": 3,
    "per_device_train_batch_size": 4,
    "max_new_tokens": 8,
    "learning_rate": 1e-2,
    "lr_scheduler_type": "constant",
}
KINDS = ("OnlineDPO", "XPO", "NashMD")
ARGUMENTS = ("ref_model", "reward_funcs", "judge", "peft_config", "eval_dataset")


def online_trainer(kind, model, tokenizer, folder, *, dataset=None, trainer=None, **changes):
    """A trainer of `kind`; what is no argument of it is a setting."""
    given = {name: changes.pop(name) for name in ARGUMENTS if name in changes}
    if not {"reward_funcs", "judge"} & given.keys():
        given["reward_funcs"] = digits
    return (trainer or getattr(core, f"{kind}Trainer"))(
        model=model,
        args=getattr(core, f"{kind}Config")(output_dir=str(folder), **QUIET | changes),
        train_dataset=prompts(16) if dataset is None else dataset,
        processing_class=tokenizer,
        **given,
    )


def played(kind, completions):
    """A class of trainers whose rollouts are given completions, in turn; nothing is sampled."""
    rows = iter(completions)

    class Player(getattr(core, f"{kind}Trainer")):
        def generate(self, prompts):  # noqa: ARG002 - those of the completions
            return next(rows)

    return Player


def recording(kind, rollouts):
    """A class of trainers that appends the completions of each rollout to a list."""

    class Recorder(getattr(core, f"{kind}Trainer")):
        def generate(self, prompts):
            rollouts.append(super().generate(prompts))
            return rollouts[-1]

    return Recorder
