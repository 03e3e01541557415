"""Whole runs by a released TRL, written down: `python record.py`, where that release is installed.

`trl-<release>.json` beside it is what `tests/parity/test_recorded_runs.py` replays; it says with
which versions it was made. On a CPU it comes out the same again. The model itself samples; nothing
is dictated.
"""

import importlib.metadata
import json
import tempfile
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

FOLDER = Path(__file__).parent
VOCABULARY = ["<pad>", "<eos>", "<unk>", *"0123456789+-*/=()"]
COMMON = {
    "use_cpu": True,
    "bf16": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_steps": 4,
    "max_completion_length": 12,
    "num_generations": 4,
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "learning_rate": 1e-3,
}
# Plain descent moves by the gradient itself, so that a loss of another size shows in the weights.
DESCENT = {"optim": "sgd", "learning_rate": 0.05, "max_grad_norm": 1e3}
RUNS = {
    "defaults": {},
    "descent": DESCENT,
    "descent, two updates, two iterations, reference": {
        **DESCENT,
        "beta": 0.04,
        "steps_per_generation": 4,
        "num_iterations": 2,
    },
    "descent, grpo, two updates, cut ones masked": {
        **DESCENT,
        "loss_type": "grpo",
        "steps_per_generation": 4,
        "mask_truncated_completions": True,
    },
    "descent, rollouts across updates, a short last update": {
        **DESCENT,
        "steps_per_generation": 3,
        "max_steps": 6,
    },
}
DISTRIBUTIONS = ("trl", "transformers", "accelerate", "datasets", "torch")
EVERY = 31  # of the weights one in so many is written down


def tokenizer():
    """One token per character."""
    ids = {text: i for i, text in enumerate(VOCABULARY)}
    made = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    made.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )


def model(folder):
    """A tiny random Qwen2, the same with every version of transformers, as it lies in a folder."""
    config = Qwen2Config(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    made = Qwen2ForCausalLM(config)
    draw = torch.Generator().manual_seed(0)
    for name, weight in sorted(made.named_parameters()):
        centre = 1.0 if "norm" in name else 0.0
        weight.data = centre + 0.3 * torch.randn(weight.shape, generator=draw)
    made.save_pretrained(folder)
    return Qwen2ForCausalLM.from_pretrained(folder)


def rows():
    """Prompts of unequal lengths."""
    texts = ["1+2", "12+34=", "7", "7*8-9", "(4+4)*2", "12345", "4+4", "0=", "3-1", "8/2", "9*9"]
    return Dataset.from_dict({"prompt": texts})


def digit_share(completions, **_):
    """The share of digits in each text."""
    texts = [text.replace(" ", "") for text in completions]
    return [sum(ch.isdigit() for ch in text) / (len(text) + 1) for text in texts]


def some_weights(trained):
    """Every so many-th weight, by the names of the parameters."""
    every = [weight.detach().flatten() for _, weight in sorted(trained.named_parameters())]
    return [float(f"{x:.9g}") for x in torch.cat(every)[::EVERY].tolist()]


class Watch(TrainerCallback):
    """Keeps some weights after each optimizer step."""

    def __init__(self):
        self.weights = []

    def on_step_end(self, args, state, control, model=None, **_):  # noqa: ARG002 - as it is called
        """Read them."""
        self.weights.append(some_weights(model))


def recorded(trained, rollouts):
    """The model's own `generate`, which adds what it sampled to the rollouts.

    The generator begins anew behind each, so that who plays a rollout shuffles it alike.
    """
    sample = trained.generate

    def generate(**options):
        sampled = sample(**options)
        length = options["input_ids"].size(1)
        pairs = zip(options["input_ids"], options["attention_mask"].bool(), strict=True)
        prompts = [row[mask].tolist() for row, mask in pairs]
        completions = [until_end(row) for row in sampled[:, length:].tolist()]
        rollouts.append({"prompt_ids": prompts, "completion_ids": completions})
        torch.manual_seed(len(rollouts))
        return sampled

    return generate


def until_end(ids):
    """The tokens up to the first end, which is the last of them."""
    return ids[: ids.index(1) + 1] if 1 in ids else ids


def run(changes, folder):
    """What one training sampled, was paid, logged and learned."""
    rollouts, rewards = [], []

    def digits(completions, **columns):
        rewards.append(digit_share(completions, **columns))
        return rewards[-1]

    trained = model(folder / "model")
    trained.generate = recorded(trained, rollouts)
    watch = Watch()
    trainer = losing(GRPOTrainer)(
        model=trained,
        reward_funcs=digits,
        args=GRPOConfig(output_dir=str(folder), **COMMON | changes),
        train_dataset=rows(),
        processing_class=tokenizer(),
        callbacks=[watch],
    )
    return {"rollouts": rollouts, "rewards": rewards, **learned(trainer, watch)}


def learned(trainer, watch):
    """Train, and return what was logged, some weights after each step, and every loss."""
    trainer.train()
    logs = [row for row in trainer.state.log_history if "loss" in row]
    return {"logs": logs, "losses": trainer.losses, "weights": watch.weights}


def losing(kind):
    """A kind of trainer that keeps the loss of each micro-batch, as it acts on the weights."""

    class Losing(kind):
        losses = None

        def training_step(self, *given, **named):
            loss = super().training_step(*given, **named)
            self.losses = [*(self.losses or []), loss.item()]
            return loss

    return Losing


def main():
    """Run all and write them down."""
    versions = {name: importlib.metadata.version(name) for name in DISTRIBUTIONS}
    found = {"versions": versions, "runs": {}}
    for name, changes in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            found["runs"][name] = run(changes, Path(folder))
    release = versions["trl"].rpartition(".")[0]
    path = FOLDER / f"trl-{release}.json"
    path.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
