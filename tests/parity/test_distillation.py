"""Our trainers with a teacher and TRL's, on the same completions: losses, metrics and weights."""

import copy
import random
from collections import defaultdict
from inspect import signature
from types import SimpleNamespace

import pytest
import torch
import trl
from datasets import Dataset
from peers import difference, double
from teacher_peers import QUIET, STEPS, conversations, defaults, of_weights
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast
from trl.experimental.gkd import GKDConfig, GKDTrainer
from trl.experimental.gold import GOLDConfig, GOLDTrainer
from trl.experimental.gold.gold_trainer import ULDLoss, build_teacher_inputs_from_texts
from trl.experimental.iw_opd import IWOPDConfig, IWOPDTrainer
from trl.experimental.utils import piece_byte_len
from trl.trainer import distillation_trainer

import core
from core.forward.batches import token_batch
from core.forward.two_heads import entropy_of
from core.losses.divergence import divergence

LIMIT = 1e-10
ANSWER = "2"


class ExactDivergence:
    """TRL's divergence and entropy by their definitions, in the precision of the hidden states."""

    @staticmethod
    def apply(own, weight, bias, other, other_weight, other_bias, beta, temperature, *scales):
        assert bias is None
        assert other_bias is None
        assert scales == (1.0, None, 1.0, None)
        student = (own @ weight.T / temperature).log_softmax(-1)
        teacher = (other @ other_weight.T / temperature).log_softmax(-1)
        return divergence(student, teacher, beta), entropy_of(student)


@pytest.fixture
def models(build_llama):
    """A student and a teacher of another width, in double precision."""
    return double(build_llama()), double(build_llama(seed=1, hidden_size=48))


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_twenty_steps_of_distillation(
    beta, models, tiny_tokenizer, tmp_path, monkeypatch, measured
):
    monkeypatch.setattr(distillation_trainer, "ChunkedDivergenceFunction", ExactDivergence)
    rollouts = []

    class Ours(core.DistillationTrainer):
        def generate(self, prompts):
            rollouts.append(super().generate(prompts))
            return rollouts[-1]

    class Theirs(trl.DistillationTrainer):
        def _generate(self, prompts):  # noqa: ARG002 - replays, in the order of ours
            played = rollouts[self.state.global_step]
            lists = ([list(ids) for ids in x] for x in (played.prompt_ids, played.completion_ids))
            return *lists, None, None, None

    settings = QUIET | {"beta": beta, "temperature": 0.8, "max_completion_length": 12}
    data = Dataset.from_dict({"prompt": conversations(16)})
    trained = []
    for kind, config in (
        (Ours, core.DistillationConfig),
        (Theirs, trl.DistillationConfig),
    ):
        student, teacher = copy.deepcopy(models)
        trainer = kind(
            student,
            teacher,
            args=config(output_dir=str(tmp_path), **settings),
            train_dataset=data,
            processing_class=copy.deepcopy(tiny_tokenizer),
        )
        trainer.train()
        trained.append(trainer)
    ours, theirs = trained
    own, other = (
        [row for row in trainer.state.log_history if "loss" in row] for trainer in trained
    )
    assert len(own) == len(other) == STEPS
    for mine, row in zip(own, other, strict=True):
        for name in ("loss", "entropy", "grad_norm"):
            assert measured(name, difference(mine[name], row[name])) < LIMIT
    moved = (of_weights(ours.model) - of_weights(models[0])).abs().max()
    assert moved > 1e-3
    gap = difference(of_weights(ours.model), of_weights(theirs.model))
    assert measured("weights after 20 steps", gap) < LIMIT


def test_twenty_steps_of_gkd_on_the_data(models, tiny_tokenizer, tmp_path, measured):
    """All rows are one optimizer step, so that their order does not matter."""
    answer = {"role": "assistant", "content": ANSWER}
    data = Dataset.from_dict({"messages": [[*turns, answer] for turns in conversations(8)]})
    settings = QUIET | {"lmbda": 0.0, "beta": 0.3}
    trained = []
    for kind, config in ((core.GKDTrainer, core.GKDConfig), (GKDTrainer, GKDConfig)):
        student, teacher = copy.deepcopy(models)
        trainer = kind(
            student,
            teacher,
            args=config(output_dir=str(tmp_path), **settings),
            train_dataset=data,
            processing_class=copy.deepcopy(tiny_tokenizer),
        )
        random.seed(0)  # TRL draws between the student and the data from it
        trainer.train()
        trained.append(trainer)
    gap = difference(*(of_weights(trainer.model) for trainer in trained))
    assert (of_weights(trained[0].model) - of_weights(models[0])).abs().max() > 1e-3
    assert measured("weights after 20 steps", gap) < LIMIT


def weighted(**changes):
    return {"iw_opd_gamma": 0.5, **changes}


def jsd(**changes):
    return {"distillation_objective": "jsd", **changes}


OBJECTIVES = {
    "weighted": weighted(),
    "unweighted": weighted(iw_opd_gamma=0.0, temperature=0.7),
    "all tokens": jsd(loss_top_k=0, beta=0.3, temperature=0.7),
    "the sampled token": jsd(),
    "the most likely token": jsd(reverse_kl_top_1_mode="argmax"),
    "both models' most likely tokens": jsd(beta=0.4),
    "the teacher's three": jsd(beta=0.0, loss_top_k=3),
    "the student's three": jsd(beta=1.0, loss_top_k=3, loss_add_tail=False),
    "both models' three": jsd(beta=0.4, loss_top_k=3),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_step_of_iw_opd(objective, models, tiny_tokenizer, tmp_path, measured):
    settings = QUIET | OBJECTIVES[objective] | {"max_completion_length": 12}
    ours, theirs = copy.deepcopy(models[0]), copy.deepcopy(models[0])
    trainer = core.IWOPDTrainer(
        ours,
        models[1],
        args=core.IWOPDConfig(output_dir=str(tmp_path), **settings),
        train_dataset=Dataset.from_dict({"prompt": conversations(16)}),
        processing_class=tiny_tokenizer,
    )
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    trainer.args.steps_per_generation = 1
    rows = [[8, 9, 10, 11, 1], [12, 13, 14, 15, 16], [17, 18, 1], [20, 1]]
    batch = token_batch([[5, 6, 7]] * 4, rows, tiny_tokenizer.pad_token_id, None)
    batch |= {"on_policy": torch.ones(4), "num_items_in_batch": torch.tensor(15.0)}
    trainer.learn(trainer.model, batch, None)

    args = IWOPDConfig(output_dir=str(tmp_path), **settings)
    names = ("distillation_objective", "iw_opd_gamma", "iw_opd_epsilon", "beta", "temperature")
    names += ("reverse_kl_top_1_mode", "loss_top_k", "loss_add_tail", "use_teacher_server")
    peer = IWOPDTrainer.__new__(IWOPDTrainer)
    vars(peer).update({name: getattr(args, name) for name in names})
    vars(peer).update(
        args=args,
        model=theirs.train(),
        teacher_model=models[1],
        _local_teacher_tokenizer_matches_student=True,
        _metrics={"train": defaultdict(list)},
        accelerator=SimpleNamespace(unwrap_model=lambda model: model),
    )
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :3] = -100
    inputs = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    peer.compute_loss(theirs, inputs, num_items_in_batch=15).backward()
    gradients = (
        torch.cat([p.grad.flatten() for p in model.parameters()]) for model in (ours, theirs)
    )
    own, other = gradients
    assert other.abs().max() > 1e-4
    assert measured(f"gradient, {objective}", difference(own, other)) < LIMIT
    if "weighted" in objective:
        seen = {name: values[-1] for name, values in trainer._metrics["train"].items()}
        for name, values in peer._metrics["train"].items():
            assert measured(f"metrics, {objective}", difference(seen[name], values[-1])) < LIMIT


def byte_level(*merges):
    """A byte-level tokenizer of 258 tokens, and one for each merge of two."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<p>", "<e>", *alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(BPE({token: i for i, token in enumerate(tokens)}, [*merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<p>", "<e>"])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<p>", eos_token="<e>")


TEXTS = ["1234 5", "x12", "é5634", "7"]
UNIVERSAL = {
    "sorted": {},
    "by places": {"use_extended_uld": False},
    "hybrid": {"uld_use_hybrid_loss": True, "beta": 0.3},
    "with temperatures": {"uld_student_temperature": 0.7, "uld_teacher_temperature": 1.3},
}


@pytest.mark.parametrize("kind", UNIVERSAL)
def test_a_step_of_gold_across_tokenizers(kind, build_llama, tmp_path, measured):
    """By the chain rule, which reads each token from its own logits, and without end tokens."""
    own = byte_level(("1", "2"), ("3", "4"), ("5", "6"))
    other = byte_level(("2", "3"), ("Ã", "©"))
    other.save_pretrained(tmp_path)
    student, teacher = (
        double(build_llama(seed, vocab_size=len(tokenizer)))
        for seed, tokenizer in enumerate((own, other))
    )
    settings = UNIVERSAL[kind] | {"use_uld_loss": True, "uld_token_merge_strategy": "bayesian"}
    settings |= {"teacher_tokenizer_name_or_path": str(tmp_path), "lmbda": 1.0}
    trainer = core.GOLDTrainer(
        student,
        teacher,
        args=core.GOLDConfig(output_dir=str(tmp_path), **QUIET, **settings),
        train_dataset=Dataset.from_dict({"prompt": conversations(16)}),
        processing_class=own,
    )
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = 1
    rows = [[*own(text)["input_ids"], own.eos_token_id] for text in TEXTS]
    prompt = own("a+b=")["input_ids"]
    batch = token_batch([prompt] * 4, rows, own.pad_token_id, None)
    tokens = float(sum(map(len, rows)))
    batch |= {"on_policy": torch.ones(4), "num_items_in_batch": torch.tensor(tokens)}
    trainer.learn(trainer.model, batch, None)
    gradient = torch.cat([p.grad.flatten() for p in student.parameters()])

    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, : len(prompt)] = -100
    spans = torch.zeros(*ids.shape, 2, dtype=torch.long)
    for row, completion in enumerate(rows):
        pieces = own.convert_ids_to_tokens(completion[:-1])
        ends = torch.tensor([*map(piece_byte_len, pieces)]).cumsum(0)
        spans[row, len(prompt) : len(prompt) + len(pieces), 1] = ends
    read, teacher_labels, teacher_mask, teacher_spans = build_teacher_inputs_from_texts(
        other, ["a+b="] * 4, TEXTS
    )
    config = GOLDConfig(output_dir=str(tmp_path), **QUIET, **settings)
    student.zero_grad()
    with torch.no_grad():
        logits = teacher(input_ids=read, attention_mask=teacher_mask).logits
    loss = ULDLoss(config, own, other)(
        student(input_ids=ids, attention_mask=mask).logits,
        logits,
        labels,
        teacher_labels,
        ids,
        read,
        spans,
        teacher_spans,
    )
    loss.backward()
    theirs = torch.cat([p.grad.flatten() for p in student.parameters()])
    assert theirs.abs().max() > 1e-4
    assert measured(f"gradient of gold, {kind}", difference(gradient, theirs)) < LIMIT


CONFIGS = {
    "Distillation": (trl.DistillationConfig, trl.DistillationTrainer, {}),
    "GKD": (GKDConfig, GKDTrainer, {"shuffle_dataset", "remove_unused_columns"}),
    "GOLD": (GOLDConfig, GOLDTrainer, {"shuffle_dataset", "remove_unused_columns", "callbacks"}),
    "IWOPD": (IWOPDConfig, IWOPDTrainer, {"remove_unused_columns"}),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_names_and_defaults(name):
    """TRL's trainers of GKD and IW-OPD set `remove_unused_columns` to False themselves.

    Its GOLD has a list of callbacks that is always empty.
    """
    config, trainer, others = CONFIGS[name]
    ours, theirs = defaults(getattr(core, f"{name}Config")), defaults(config)
    assert {key for key in theirs if key not in ours or ours[key] != theirs[key]} == set(others)
    mine, other = (signature(kind.__init__) for kind in (getattr(core, f"{name}Trainer"), trainer))
    assert list(mine.parameters) == list(other.parameters)
