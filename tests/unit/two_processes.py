"""Trainings whose batch two processes can share, and what each of them held in the end."""

import gc
import os
import socket
from multiprocessing import get_context
from random import Random

import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env
from datasets import Dataset
from grpo_runs import of_loss
from same_batch import GROUP, GRPO, QUIET, spread_reward, steps_of, sums, weights_of
from torch.distributed.tensor import DTensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    TrainerCallback,
)

import core
from core import (
    A2POTrainer,
    BCOConfig,
    BCOTrainer,
    BEMACallback,
    GRPOTrainer,
    KTOConfig,
    KTOTrainer,
    PPOTrainer,
    RLOOTrainer,
    SFTConfig,
    SFTTrainer,
)
from core.collect.generation import call_rollout
from core.forward.packing import can_pack, takes_segments
from core.losses.policy import LOSS_TYPES
from core.shards.sharding import gather_weights, without_weights
from core.spread.launch import CONFIGS

PARTS = ("prompt", "completion")
OTHER_WIDTH = "{}/teacher"  # in the folder of the models
ACROSS = {"use_uld_loss": True, "uld_use_hybrid_loss": True, "uld_crossentropy_weight": 0.5}


def save_models(folder, build_llama, tokenizer, **changes):
    """Write the model that all cases train, and its teacher of another width."""
    build_llama(**changes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    build_llama(seed=1, hidden_size=48, **changes).save_pretrained(folder / "teacher")
    return folder


def completion_of_its_place(lengths):
    """What a row gets depends on its prompt and its place in the group, wherever it is sampled."""

    def rollout(rows, trainer):
        start = trainer.accelerator.process_index * len(rows)
        tokenizer, made = trainer.processing_class, []
        for place, row in enumerate(rows, start):
            draw = Random(f"{row} {place % GROUP} {trainer.state.global_step}")
            made.append([draw.randrange(5, 64) for _ in range(draw.choice(lengths))])
        return {
            "prompt_ids": [tokenizer(row).input_ids for row in rows],
            "completion_ids": [[*ids, tokenizer.eos_token_id] for ids in made],
            "logprobs": None,
        }

    return rollout


def played(method, lengths):
    """Return a trainer whose completions depend on their prompts and their places alone."""

    class Played(getattr(core, f"{method}Trainer")):
        def generate(self, rows):
            return call_rollout(completion_of_its_place(lengths), self.tokenizer, rows, self)

    return Played


def worked(n):
    """Return prompts with completions of one and two symbols."""
    return sums(n).add_column("completion", [f"{2 * i}" for i in range(n)])


def some_alike(prompts, completion_ids, **keywords):
    """The same for all completions of some prompts."""
    found = spread_reward(completion_ids=completion_ids, prompts=prompts, **keywords)
    return [0.0 if int(p[0]) % 3 == 1 else r for p, r in zip(prompts, found, strict=True)]


def grpo(
    folder,
    out,
    processes,
    rollout=None,
    completions=8,
    reward=spread_reward,
    kind=GRPOTrainer,
    rows=None,
    **options,
):
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.generation_config.eos_token_id = list(range(5, 25))
    return kind(
        model=model,
        reward_funcs=reward,
        args=kind.settings(
            output_dir=str(out),
            per_device_train_batch_size=completions // processes,
            # With 1e-8, its default, a weight whose gradient is rounding error moves a whole step.
            **GRPO | {"learning_rate": 1e-3, "max_steps": 4} | options,
        ),
        train_dataset=sums(8) if rows is None else rows,
        processing_class=AutoTokenizer.from_pretrained(folder),
        rollout_func=rollout,
    )


def with_loss(loss_type):
    """A token mean per micro-batch is the same for all splits only if all lengths are."""
    lengths = [1, 3, 9] if LOSS_TYPES[loss_type].split_invariant else [5]

    def build(folder, out, processes):
        # Four completions are one group, of which each of two processes has one half.
        return grpo(
            folder,
            out,
            processes,
            rollout=completion_of_its_place(lengths),
            completions=4 if loss_type == "dr_grpo" else 8,
            **of_loss(loss_type),
        )

    return build


def selected(folder, out, processes):
    """Some prompts are left out of it, so that processes have unequally many."""
    rollout = completion_of_its_place([1, 3, 9])
    drops = {"rollout_selection": "varied", "gradient_accumulation_steps": 2, "beta": 0.1}
    return grpo(folder, out, processes, rollout=rollout, reward=some_alike, **drops)


def filled(folder, out, processes):
    """Prompts are drawn again until enough are left, so that processes have unequally many."""
    rollout = completion_of_its_place([1, 3, 9])
    draws = {"rollout_selection": "filled", "gradient_accumulation_steps": 2, "beta": 0.1}
    return grpo(folder, out, processes, rollout=rollout, reward=some_alike, **draws)


def by_prompt(folder, out, processes):
    """A mean over the tokens of each prompt, of whose completions each process has one half."""
    rollout = completion_of_its_place([1, 3, 9])
    return grpo(
        folder, out, processes, rollout=rollout, completions=4, loss_aggregate="prompt_mean"
    )


def by_entropy(folder, out, processes):
    """The tokens of both processes are judged together, and counted together."""
    rollout = completion_of_its_place([1, 3, 9])
    chosen = {"top_entropy_quantile": 0.4, "top_entropy_normalizer": "kept", "num_iterations": 2}
    return grpo(folder, out, processes, rollout=rollout, **chosen)


def steered(folder, out, processes):
    """The bonus follows the entropy of both; it is a mean of each one's tokens, equally many."""
    rollout = completion_of_its_place([5])
    bonus = {"use_adaptive_entropy": True, "entropy_coef": 0.1, "entropy_target": 9.0}
    return grpo(folder, out, processes, rollout=rollout, **bonus)


def filled_up(folder, out, processes):
    """Two draws are too few for some rollouts, and one reward judges; right prompts retire."""
    return grpo(
        folder,
        out,
        processes,
        rollout=completion_of_its_place([1, 3, 9]),
        reward=[some_alike, spread_reward],
        rollout_selection="filled",
        selection_reward="some_alike",
        selection_draws=2,
        selection_fills_up=True,
        prompt_retirement=0.9,
    )


def best(folder, out, processes):
    """The half of each group with the most reward per token; the others have advantage 0."""
    rollout = completion_of_its_place([1, 3, 9])
    kept = {"rollout_selection": "efficient", "selection_kept": 2, "scale_rewards": "centred_batch"}
    return grpo(folder, out, processes, rollout=rollout, **kept)


def by_step(completions, **_):
    """Two steps of each completion, the second one at its end."""
    return [[(max(1, len(t) // 2), 1.0), (len(t), float(len(t) % 4))] for t in completions]


by_step.per_step = True


def process(folder, out, processes):
    """Advantages of tokens, where the longest completion may be another process's."""
    rollout = completion_of_its_place([1, 3, 9])
    return grpo(
        folder, out, processes, rollout=rollout, reward=by_step, advantage_estimator="process"
    )


def sampled(folder, out, processes):
    """Completions of the policy itself, which end at various lengths; each is used twice.

    The checkpoint is one with a reference that has moved, between the two uses of a rollout.
    """
    moving = {"sync_ref_model": True, "ref_model_sync_steps": 2, "ref_model_mixup_alpha": 0.6}
    saved = {"save_strategy": "steps", "save_steps": 3}
    return grpo(folder, out, processes, num_iterations=2, beta=0.5, **moving, **saved)


def leave_one_out(folder, out, processes):
    """The KL of both processes' completions is in their rewards, and their deviation divides."""
    rollout = completion_of_its_place([1, 3, 9])
    ours = {"normalize_advantages": True, "num_iterations": 2, "beta": 0.1}
    return grpo(folder, out, processes, rollout=rollout, kind=RLOOTrainer, **ours)


def to_go(folder, out, processes):
    """The tokens of both are whitened together."""
    rollout = completion_of_its_place([1, 3, 9])
    tokens = {"advantage_estimator": "to_go", "kl_coef": 0.1, "num_iterations": 2}
    return grpo(folder, out, processes, rollout=rollout, **tokens)


def with_values(folder, out, processes):
    """The value model learns from the gradients of both."""
    rollout = completion_of_its_place([1, 3, 9])
    ours = {"num_iterations": 2, "old_kl_coef": 0.1, "old_kl_target": 1e-3, "lam": 0.5}
    return grpo(folder, out, processes, rollout=rollout, kind=PPOTrainer, **ours)


def tenth(**columns):
    """Rewards whose squares stay small."""
    return [reward / 10 for reward in spread_reward(**columns)]


def regressed(folder, out, processes):
    """Each completion against the value of its prompt."""
    rollout, rows = completion_of_its_place([1, 3, 9]), sums(8)
    rows = rows.add_column("optimal_value", [0.1 * i for i in range(len(rows))])
    ours = {"kind": A2POTrainer, "rows": rows, "reward": tenth, "beta2": 0.1}
    return grpo(folder, out, processes, rollout=rollout, **ours)


def sft(folder, out, processes, **arguments):
    texts = [f"{i}+{i}={2 * i}" * (1 + i % 3) for i in range(16)]
    return SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        args=SFTConfig(
            output_dir=str(out),
            per_device_train_batch_size=4 // processes,
            learning_rate=1e-3,
            num_train_epochs=1,
            **QUIET,
        ),
        train_dataset=Dataset.from_dict({"text": texts}),
        processing_class=AutoTokenizer.from_pretrained(folder),
        **arguments,
    )


def averaged(folder, out, processes):
    """Fine-tuning whose averaged weights are saved beside it."""
    return sft(folder, out, processes, callbacks=[BEMACallback(update_freq=1)])


WHOLE_STEPS = {"batch_scope": "step", "gradient_accumulation_steps": 2, "num_train_epochs": 2}


def of_pairs(method, **changes):
    """Answers of which some are cut off, gold ones beside them; with DPO a reference, too."""

    def build(folder, out, processes):
        sums = [(f"{i}+{i}=", f"{2 * i}" * (1 + i % 3), f"{i}", f"{i} " * 2) for i in range(10, 26)]
        return getattr(core, f"{method}Trainer")(
            model=AutoModelForCausalLM.from_pretrained(folder),
            args=getattr(core, f"{method}Config")(
                output_dir=str(out),
                per_device_train_batch_size=4 // processes,
                learning_rate=1e-3,
                adam_epsilon=1e-3,
                max_length=9,
                **{"num_train_epochs": 1, **QUIET, **changes},
            ),
            train_dataset=Dataset.from_list(
                [{"prompt": p, "chosen": c, "rejected": r, "reference": g} for p, c, r, g in sums]
            ),
            processing_class=AutoTokenizer.from_pretrained(folder),
        )

    return build


def labelled(trainer, config, **changes):
    """Labelled answers whose shift of rewards is that of the whole step."""

    def make(folder, out, processes):
        rows = [
            {
                "prompt": f"{i}+{i}=",
                "completion": f"{2 * i + i % 2}" * (1 + i % 3),
                "label": i % 2 == 0,
            }
            for i in range(10, 26)
        ]
        return trainer(
            model=AutoModelForCausalLM.from_pretrained(folder),
            args=config(
                output_dir=str(out),
                per_device_train_batch_size=4 // processes,
                gradient_accumulation_steps=2,
                learning_rate=1e-3,
                num_train_epochs=2,
                adam_epsilon=1e-3,
                max_length=9,
                batch_scope="step",
                **QUIET,
                **changes,
            ),
            train_dataset=Dataset.from_list(rows),
            processing_class=AutoTokenizer.from_pretrained(folder),
        )

    return make


SCORED = {
    "Reward": [
        {"prompt": f"{i}+{i}=", "chosen": f"{2 * i}" * (1 + i % 3), "rejected": f"{i}"}
        for i in range(10, 26)
    ],
    "PRM": [
        {
            "prompt": f"{i}+{i}=",
            "completions": ["10", f"{2 * i}", "so"][: 1 + i % 3],
            "labels": [True, i % 2 > 0, i % 2 > 0][: 1 + i % 3],
        }
        for i in range(10, 26)
    ],
    "Verifier": [
        {"prompt": f"{i}+{i}=", "completion": f"{2 * i}" * (1 + i % 3), "label": i % 2 > 0}
        for i in range(10, 26)
    ],
}


def scoring(method, loader, labels, **changes):
    """Pairs or solutions of several lengths; those of two processes have unequally many steps."""

    def build(folder, out, processes):
        torch.manual_seed(1)  # of the head
        return getattr(core, f"{method}Trainer")(
            model=loader.from_pretrained(folder, num_labels=labels),
            args=getattr(core, f"{method}Config")(
                output_dir=str(out),
                per_device_train_batch_size=4 // processes,
                learning_rate=1e-3,
                num_train_epochs=1,
                adam_epsilon=1e-3,
                **QUIET,
                **changes,
            ),
            train_dataset=Dataset.from_list(SCORED[method]),
            processing_class=AutoTokenizer.from_pretrained(folder),
        )

    return build


def online(method, **changes):
    """Pairs of completions, whole on each process, and a reference that is given."""

    def build(folder, out, processes):
        return played(method, [1, 3, 9])(
            model=AutoModelForCausalLM.from_pretrained(folder),
            ref_model=AutoModelForCausalLM.from_pretrained(folder),
            reward_funcs=spread_reward,
            args=getattr(core, f"{method}Config")(
                output_dir=str(out),
                per_device_train_batch_size=4 // processes,
                learning_rate=1e-3,
                num_train_epochs=2,
                adam_epsilon=1e-3,
                max_new_tokens=12,
                **QUIET,
                **changes,
            ),
            train_dataset=sums(8),
            processing_class=AutoTokenizer.from_pretrained(folder),
        )

    return build


def distilled(method, teacher=None, **changes):
    """Completions of the student or of the data, for SSD or by the probabilities of a teacher.

    Args:
        method: The method, as in the name of its trainer.
        teacher: A model, by its name or by its path in the folder "{}".
        changes: Further settings.
    """

    def build(folder, out, processes):
        roles = {} if teacher is None else {"teacher_model": teacher.format(folder)}
        return played(method, [3, 10, 12, 15])(
            model=AutoModelForCausalLM.from_pretrained(folder),
            **roles,
            args=getattr(core, f"{method}Config")(
                output_dir=str(out),
                per_device_train_batch_size=4 // processes,
                learning_rate=1e-3,
                num_train_epochs=2,
                adam_epsilon=1e-3,
                **QUIET,
                **changes,
            ),
            train_dataset=worked(8),
            processing_class=AutoTokenizer.from_pretrained(folder),
        )

    return build


def mixed(folder, out, processes):
    """Student and teacher sample; prompts are left out, each with its completions in the data."""
    return grpo(
        folder,
        out,
        processes,
        kind=core.MiniLLMTrainer,
        reward=some_alike,
        rows=worked(8),
        teacher_model_name_or_path=str(folder / "teacher"),
        teacher_mix_alpha=0.3,
        scale_rewards="batch",
        lm_coef=0.5,
        gamma=0.9,
        rollout_selection="varied",
        gradient_accumulation_steps=2,
    )


def hinted(folder, out, processes):
    """A group lies on both processes, and a moving teacher is shown what either sampled."""

    def is_short(completion_ids, **_):
        return [float(len(ids) < 6) for ids in completion_ids]

    def count(completions, **_):
        return [f"{len(text)} signs" if len(text) > 6 else None for text in completions]

    return played("SDPO", [3, 10])(
        model=AutoModelForCausalLM.from_pretrained(folder),
        reward_funcs=is_short,
        args=core.SDPOConfig(
            output_dir=str(out),
            per_device_train_batch_size=4 // processes,
            distillation_mode="full_logits",
            teacher_update_rate=0.5,
            include_environment_feedback=True,
            adam_epsilon=1e-3,
            **GRPO | {"learning_rate": 1e-3, "max_steps": 4},
        ),
        train_dataset=sums(8),
        processing_class=AutoTokenizer.from_pretrained(folder),
        feedback_funcs=count,
    )


CASES = {
    "sft": sft,
    "averaged": averaged,
    "distilled": distilled("SSD", max_completion_length=12),
    "taught": distilled("GKD", OTHER_WIDTH, lmbda=1.0),
    "in other tokens": distilled("GOLD", "pocket-base", **ACROSS),
    "mixed": mixed,
    "hinted": hinted,
    "dpo": of_pairs("DPO"),
    "aot": of_pairs("DPO", loss_type=["aot", "aot_unpaired", "sft"], **WHOLE_STEPS),
    "orpo": of_pairs("ORPO"),
    "tpo": of_pairs("TPO"),
    "kto": labelled(KTOTrainer, KTOConfig, beta=1.0),
    "bco": labelled(BCOTrainer, BCOConfig, beta=1.0),
    "reward": scoring(
        "Reward", AutoModelForSequenceClassification, 1, center_rewards_coefficient=0.1
    ),
    "prm": scoring("PRM", AutoModelForTokenClassification, 2),
    "verifier": scoring("Verifier", AutoModelForTokenClassification, 1, lm_coef=0.0),
    "online": online("OnlineDPO"),
    "exploring": online("XPO", alpha=0.1),
    "against a mixture": online("NashMD", beta=0.1),
    "selected": selected,
    "filled": filled,
    "filled up": filled_up,
    "best": best,
    "process": process,
    "by_prompt": by_prompt,
    "by_entropy": by_entropy,
    "steered": steered,
    "leave_one_out": leave_one_out,
    "to_go": to_go,
    "with_values": with_values,
    "regressed": regressed,
    "sampled": sampled,
    "resumed": sampled,  # after it, from its checkpoint
    **{name: with_loss(name) for name in LOSS_TYPES},
}


class Gradients(TrainerCallback):
    """The most elements of gradients that this process's optimiser was given."""

    def __init__(self, trainer):
        self.trainer = trainer
        self.elements = 0

    def on_train_begin(self, *_, **__):
        optimizer(self.trainer).register_step_pre_hook(self.look)

    def look(self, optimizer, *_):
        held = [p.grad for group in optimizer.param_groups for p in group["params"]]
        self.elements = max(self.elements, sum(elements(g) for g in held if g is not None))


def optimizer(trainer):
    """PyTorch's own, inside of those of accelerate and DeepSpeed."""
    inner = trainer.optimizer.optimizer
    return getattr(inner, "optimizer", inner)


def elements(tensor):
    """Of a tensor, those that lie on this process."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).numel()


def run(case, folder, out, processes=1):
    """Steps, final weights, and what this process held."""
    trainer = CASES[case](folder, out, processes)
    gradients = Gradients(trainer)
    trainer.add_callback(gradients)
    plugin = getattr(trainer.accelerator.state, "deepspeed_plugin", None)
    if plugin is not None:  # else ZeRO-3 keeps weights as small as these whole
        plugin.deepspeed_config["zero_optimization"]["stage3_param_persistence_threshold"] = 0
    frame = without_weights(trainer.model)
    trainer.train(resume_from_checkpoint=str(out / "checkpoint-3") if case == "resumed" else None)
    held = {**shards(trainer), "gradients": gradients.elements}
    with gather_weights(trainer.model, frame) as model:
        return steps_of(trainer), weights_of(model), held


def shards(trainer):
    """The wrapper, how one weight is placed, the elements of weights and optimiser; if it packs."""
    model, inner = trainer.model, optimizer(trainer)
    weights = [getattr(p, "ds_tensor", p) for p in model.parameters()]
    sample = model.model.layers[0].mlp.up_proj.weight
    parameters = {id(p) for p in model.parameters()}
    copies = [p for p in inner.state if id(p) not in parameters]
    moments = [t for state in inner.state.values() for t in state.values() if t.numel() > 1]
    return {
        "wrapper": type(trainer.model_wrapped).__name__,
        "placements": str(getattr(sample, "placements", "")),
        "status": getattr(getattr(sample, "ds_status", None), "name", ""),
        "weights": sum(map(elements, weights)),
        "optimiser": sum(map(elements, [*moments, *copies])),
        "packed": packs(model),
    }


def packs(model):
    """If a model takes packed rows; a classifier has no head that could prevent it."""
    if model.get_output_embeddings() is None:
        return takes_segments(model)
    return can_pack(model, {f"{part}_mask": torch.ones(1, 1) for part in PARTS})


def work(folder, out, rank, environment, cases):
    """One of two processes; each writes what it saw."""
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # else the full collection that ends each training takes most of its time
    torch.save({case: run(case, folder, out, processes=2) for case in cases}, out / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def launch(name, folder, cases):
    """What each of two processes saw, started as `accelerate launch` would with our file."""
    out = folder / name
    for attempt in ("first", "second"):
        codes = started(name, folder, out / attempt, cases)
        if min(codes) >= 0:  # else torch itself died, as seen once in its gathers over gloo
            break
    assert codes == [0, 0], codes
    return [torch.load(out / attempt / f"{rank}.pt") for rank in (0, 1)]


def started(name, folder, out, cases):
    """Exit codes of both processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    environment = {**launched(name), **place, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    context = get_context("forkserver")
    context.set_forkserver_preload(["core.trainers.grpo", "core.trainers.sft"])
    out.mkdir(parents=True)
    pair = [
        context.Process(target=work, args=(folder, out, rank, environment, cases))
        for rank in (0, 1)
    ]
    for process in pair:
        process.start()
    for process in pair:
        process.join(300)
    codes = [-1 if process.exitcode is None else process.exitcode for process in pair]
    for process in pair:
        process.kill()
    return codes


def launched(name):
    """What `accelerate launch` puts into the environment of its processes."""
    given = ["--config_file", str(CONFIGS / f"{name}.yaml"), "--num_processes", "2"]
    given += ["--main_process_port", "0", "-"]  # any free one
    arguments, defaults, _ = _validate_launch_command(launch_command_parser().parse_args(given))
    if not arguments.use_deepspeed:
        return prepare_multi_gpu_env(arguments)
    fields = ",".join(defaults.deepspeed_config)
    arguments.deepspeed_fields_from_accelerate_config = fields
    return prepare_deepspeed_cmd_env(arguments)[1]
