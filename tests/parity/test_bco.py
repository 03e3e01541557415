"""Our BCO trainer and that of TRL 1.13, the last release with one, from the source in its wheel."""

from types import SimpleNamespace

import pytest
import torch
from answer_peers import SHORT, in_double, labelled_rows
from peers import difference, double
from releases import class_of, parsed, stated, wheel
from torch.nn import functional

import core
from core.configs.bco import DENSITY_RATIO
from core.preference.density_ratio import DensityRatio, fit_density_ratio
from core.preference.unpaired_collate import answers_of

RELEASE, MEMBER = "1.13", "trl/experimental/bco/bco_trainer.py"
CONFIG = "trl/experimental/bco/bco_config.py"
METHODS = ("bco_loss", "forward", "get_batch_logps", "get_batch_loss_metrics", "_get_udm_weight")
TOLERANCE = 1e-10
STEPS, RATE, BETA = 6, 0.05, 0.3


class Running:
    """The accelerator of a single process."""

    use_distributed, device = False, "cpu"

    @staticmethod
    def gather_for_metrics(x):
        return x


def chosen_logps(logits, labels):
    """Log-probabilities of labels, as the release's own function of that name computes them."""
    return logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def peer(model, reference, ratio=None):
    """TRL's trainer of a model, with a running mean of its own."""
    path = wheel(RELEASE)
    known = {"F": functional, "selective_log_softmax": chosen_logps}
    trainer = object.__new__(class_of(path, MEMBER, "BCOTrainer", METHODS, **known))
    running = object.__new__(class_of(path, MEMBER, "RunningMoments", ("update",)))
    vars(running).update(accelerator=Running(), mean=0, std=1, var=1, count=1e-24)
    vars(trainer).update(
        model=model,
        ref_model=reference,
        accelerator=Running(),
        running=running,
        beta=BETA,
        is_encoder_decoder=False,
        aux_loss_enabled=False,
        match_underlying_distribution=ratio is not None,
        args=SimpleNamespace(min_density_ratio=0.5, max_density_ratio=10.0),
        _get_prompt_embeddings=lambda batch: (None, batch.get("embeddings")),
        _get_chosen_prob=lambda x: torch.sigmoid(x @ ratio.weight + ratio.bias),
    )
    return trainer


def their_batch(batch):
    """A batch of ours as TRL's trainer reads it: whole sequences, padded on the right."""
    answers = answers_of(batch)
    whole = [
        (prompt[mask > 0].tolist(), completion[keep > 0].tolist())
        for prompt, mask, completion, keep in zip(*answers.values(), strict=True)
    ]
    width = max(len(prompt) + len(completion) for prompt, completion in whole)

    def padded(parts, value):
        return torch.tensor([[*row, *[value] * (width - len(row))] for row in parts])

    return {
        "completion_input_ids": padded([p + c for p, c in whole], 0),
        "completion_attention_mask": padded([[1] * len(p + c) for p, c in whole], 0),
        "completion_labels": padded([[-100] * len(p) + c for p, c in whole], -100),
        "label": batch["label"].tolist(),
    }


@pytest.fixture(autouse=True)
def double_numbers(monkeypatch):
    """Everywhere, the running mean of TRL's included."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    with in_double():
        yield


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    def make(**changes):
        options = {name: changes.pop(name) for name in ("embedding_func",) if name in changes}
        settings = {"per_device_train_batch_size": 4, "optim": "sgd", "max_steps": STEPS}
        settings |= {"learning_rate": RATE, "lr_scheduler_type": "constant", "max_grad_norm": 0.0}
        return core.BCOTrainer(
            model=double(build_llama(seed=1)),
            ref_model=double(build_llama()),
            args=core.BCOConfig(output_dir=str(tmp_path), beta=BETA, **SHORT | settings | changes),
            train_dataset=labelled_rows(),
            processing_class=tiny_tokenizer,
            embedding_tokenizer=tiny_tokenizer if options else None,
            **options,
        )

    return make


def embed(input_ids, attention_mask):
    """Two numbers of a prompt: how long it is, and what it consists of."""
    lengths = attention_mask.sum(1).double()
    return torch.stack([lengths, (input_ids * attention_mask).sum(1) / lengths / 10], 1)


@pytest.mark.parametrize("matched", [False, True])
def test_steps_are_those_of_trl(matched, build, build_llama, measured):
    """Losses, gradients, delta, rewards and the weights after six steps with a running delta."""
    trainer = build(**({"embedding_func": embed} if matched else {}))
    model, reference = double(build_llama(seed=1)), double(build_llama())
    theirs, logged = peer(model, reference, trainer.matching.ratio), []
    order = [list(range(i, i + 4)) for i in (0, 4, 8)] * (STEPS // 3)
    for places in order:
        batch = trainer.data_collator([trainer.train_dataset[i] for i in places])
        inputs = their_batch(batch)
        if matched:
            prompts = [trainer.train_dataset[i]["prompt_ids"] for i in places]
            bad = [ids for ids, good in zip(prompts, inputs["label"], strict=True) if not good]
            tokens = trainer.processing_class.pad({"input_ids": bad}, return_tensors="pt")
            inputs["embeddings"] = embed(**tokens)
        loss, metrics = theirs.get_batch_loss_metrics(model, inputs)
        for parameter in model.parameters():
            parameter.grad = None
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= RATE * parameter.grad
        logged.append({"loss": loss.item(), **metrics})
    trainer.train()
    mine = [row for row in trainer.state.log_history if "loss" in row]
    assert abs(mine[-1]["delta"]) > 0.1
    for row, other in zip(mine, logged, strict=True):
        assert measured("delta", difference(row["delta"], other["delta"])) < TOLERANCE
        assert measured("logged loss", difference(row["loss"], other["loss"])) < TOLERANCE
        for side in ("chosen", "rejected"):
            for name in ("rewards", "logps"):
                mean = other[f"{name}/{side}_sum"] / other[f"count/{side}"]
                assert measured(name, difference(row[f"{name}/{side}"], mean)) < TOLERANCE
    for weight, other in zip(trainer.model.parameters(), model.parameters(), strict=True):
        assert measured("weights", difference(weight, other)) < TOLERANCE


@pytest.mark.parametrize("matched", [False, True])
def test_one_loss_and_its_gradient(matched, build, build_llama, measured):
    trainer = build(**({"embedding_func": embed} if matched else {}))
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(4)])
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    model = double(build_llama(seed=1))
    theirs = peer(model, double(build_llama()), trainer.matching.ratio)
    inputs = their_batch(batch)
    bad = [i for i in range(4) if not trainer.train_dataset[i]["label"]]
    if matched:
        ids = [trainer.train_dataset[i]["prompt_ids"] for i in bad]
        tokens = trainer.processing_class.pad({"input_ids": ids}, return_tensors="pt")
        inputs["embeddings"] = embed(**tokens)
    their_loss, _ = theirs.get_batch_loss_metrics(model, inputs)
    their_loss.backward()
    assert measured("loss", difference(loss.detach(), their_loss.detach())) < TOLERANCE
    for mine, other in zip(trainer.model.parameters(), model.parameters(), strict=True):
        assert measured("gradient", difference(mine.grad, other.grad)) < TOLERANCE


@pytest.mark.parametrize("numbers", [(30, 40), (5, 60)])
def test_the_classifier_of_prompts_is_that_of_scikit_learn(numbers, measured):
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = torch.Generator().manual_seed(4)
    first, second = (
        torch.randn(n, 3, generator=draw, dtype=torch.float64) + shift
        for n, shift in zip(numbers, (0.6, 0.0), strict=True)
    )
    labels = [1] * len(first) + [0] * len(second)
    data = torch.cat([first, second]).numpy()
    theirs = linear_model.LogisticRegression(class_weight="balanced", tol=1e-12, max_iter=9999)
    theirs.fit(data, labels)
    ours = fit_density_ratio(first, second)
    assert measured("classifier", difference(ours.weight, torch.tensor(theirs.coef_[0]))) < 1e-6
    chance = torch.tensor(theirs.predict_proba(second.numpy())[:, 1])
    udm = object.__new__(class_of(wheel(RELEASE), MEMBER, "BCOTrainer", ("_get_udm_weight",)))
    udm.args = SimpleNamespace(min_density_ratio=0.5, max_density_ratio=10.0)
    udm._get_chosen_prob = lambda _: chance
    weights = ours(second, 0.5, 10.0)
    assert measured("density ratio", difference(weights, udm._get_udm_weight(None))) < 1e-6
    assert weights.min() == 0.5
    assert weights.max() > 1.0


def test_settings_and_arguments_are_those_of_the_release():
    tree = parsed(wheel(RELEASE), CONFIG)
    (node,) = [n for n in tree.body if getattr(n, "name", "") == "BCOConfig"]
    theirs = dict(stated(node))
    ours = {f.name: f.default for f in core.BCOConfig.__dataclass_fields__.values()}
    assert {name: ours[name] for name in theirs} == theirs
    assert set(DENSITY_RATIO) < theirs.keys()
    found = parsed(wheel(RELEASE), MEMBER)
    (node,) = [n for n in found.body if getattr(n, "name", "") == "BCOTrainer"]
    (init,) = [n for n in node.body if getattr(n, "name", "") == "__init__"]
    code = core.BCOTrainer.__init__.__code__
    assert [a.arg for a in init.args.args] == [*code.co_varnames[: code.co_argcount]]


def test_a_certain_classifier_gives_the_bounds():
    ratio = DensityRatio(torch.tensor([1.0]).double(), torch.tensor(0.0).double())
    assert ratio(torch.tensor([[-99.0], [0.0], [99.0]]), 0.5, 10.0).tolist() == pytest.approx(
        [0.5, 1.0, 10.0]
    )
