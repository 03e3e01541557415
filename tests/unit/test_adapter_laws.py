"""LoRA and DoRA: worked examples, one norm for each output, dropout, and laws that notice."""

from collections import OrderedDict

import pytest
import torch
from law_mutants import holds, laws_of
from peft import LoraConfig, get_peft_model
from peft.tuners.lora.dora import DoraLinearLayer
from peft.tuners.lora.layer import Linear, LoraLayer
from torch import nn

from core.laws import adapted_weights
from core.laws.adapted_weights import RANKS, magnitude_errors, merge_changes, start_changes
from core.rollout.merged_adapters import linear_weight

WEIGHT = [[1, 0, 2], [0, -1, 1]]
DOWN, UP = [[0.5, -0.5, 1.0]], [[0.2], [-0.4]]  # A and B
INPUT = torch.tensor([[1.0, 2.0, 3.0]])  # one row
NEAR = {"rtol": 0, "atol": 2e-6}  # the examples have six decimals


def layer_of(alpha=2, dropout=0.0, **options):
    """The worked examples' layer, with adapters of rank 1 that do something."""
    plain = nn.Linear(3, 2, bias=False)
    plain.weight.data = torch.tensor(WEIGHT, dtype=torch.float32)
    config = LoraConfig(
        r=1, lora_alpha=alpha, lora_dropout=dropout, target_modules=["layer"], **options
    )
    model = get_peft_model(nn.Sequential(OrderedDict(layer=plain)), config).eval()
    layer = model.get_submodule("base_model.model.layer")
    layer.lora_A["default"].weight.data = torch.tensor(DOWN)
    layer.lora_B["default"].weight.data = torch.tensor(UP)
    return model, layer


def assert_near(found, expected):
    torch.testing.assert_close(found.detach().squeeze(0), torch.tensor(expected), **NEAR)


def test_the_example_of_lora():
    model, layer = layer_of()
    assert_near(layer.base_layer(INPUT), [7.0, 1.0])
    assert_near(model(INPUT), [8.0, -1.0])
    merged = [[1.2, -0.2, 2.4], [-0.4, -0.6, 0.2]]
    assert_near(linear_weight(layer), merged)
    assert sum(weight.numel() for weight in model.parameters() if weight.requires_grad) == 5
    assert_near(model.merge_and_unload().layer.weight, merged)


def test_the_example_of_dora():
    model, layer = layer_of(use_dora=True)
    magnitudes = layer.lora_magnitude_vector["default"].weight
    assert_near(magnitudes, [2.236068, 1.414214])
    direction = layer.base_layer.weight + layer.get_delta_weight("default")
    assert_near(direction.norm(dim=1), [2.690725, 0.748331])
    merged = [[0.997234, -0.166206, 1.994467], [-0.755929, -1.133893, 0.377964]]
    assert_near(linear_weight(layer), merged)
    assert_near(model(INPUT), [6.648225, -1.889822])
    magnitudes.data *= torch.tensor([1.1, 0.9])
    assert_near(model(INPUT), [7.313047, -1.70084])
    assert_near(model.merge_and_unload()(INPUT), [7.313047, -1.70084])


def test_the_norm_is_that_of_an_output_not_of_an_input():
    """By columns, as the paper writes it, the weight of the example is another one."""
    weight = torch.tensor(WEIGHT, dtype=torch.float32)
    direction = weight + 2 * torch.tensor(UP) @ torch.tensor(DOWN)
    columns = weight.norm(dim=0) * direction / direction.norm(dim=0)
    assert_near(weight.norm(dim=0), [1.0, 1.0, 2.236068])
    assert_near(columns, [[0.948683, -0.316228, 2.228344], [-0.316228, -0.948683, 0.185695]])
    _, layer = layer_of(use_dora=True)
    assert (linear_weight(layer) - columns).abs().max() > 0.1


def test_dropout_of_dora_is_on_its_adapter_and_its_part_of_the_base_weight():
    """h = W x + (m / ||V|| - 1) W d(x) + (m / ||V||) s B A d(x), in training alone."""
    model, layer = layer_of(alpha=3, dropout=0.5, use_dora=True)
    weight, delta = layer.base_layer.weight, layer.get_delta_weight("default")
    scale = layer.lora_magnitude_vector["default"].weight / (weight + delta).norm(dim=1)
    whole = model(INPUT)
    torch.testing.assert_close(whole, INPUT @ linear_weight(layer).T)
    model.train()
    torch.manual_seed(0)
    found = model(INPUT)
    torch.manual_seed(0)
    dropped = layer.lora_dropout["default"](INPUT)
    assert not torch.equal(dropped, INPUT)
    expected = INPUT @ weight.T + (scale - 1) * (dropped @ weight.T) + scale * (dropped @ delta.T)
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, whole)


@pytest.mark.parametrize("use_dora", [False, True])
def test_alpha_acts(use_dora):
    outputs = [layer_of(alpha, use_dora=use_dora)[0](INPUT) for alpha in (1, 2)]
    assert not torch.allclose(*outputs)


@pytest.mark.parametrize("kind", adapted_weights.KINDS)
def test_adapters_begin_as_the_model_and_are_merged_exactly(kind):
    """After steps that move the logits far."""
    assert start_changes(kind) == [0.0] * len(RANKS)
    assert max(merge_changes(kind)) < 1e-12
    model, _ = adapted_weights.trained_model(kind, 4)
    base = adapted_weights.logits_of(adapted_weights.small_model())
    assert (adapted_weights.logits_of(model) - base).abs().max() > 1


def test_rows_keep_the_norms_of_their_magnitudes():
    assert max(magnitude_errors(0)) == 0
    assert max(magnitude_errors(5)) < 1e-12


def failing():
    return {law.slug for law in laws_of("lora", "dora") if not holds(law)}


def test_every_law_holds():
    assert failing() == set()


def test_they_notice_adapters_that_begin_at_random(monkeypatch):
    reset = LoraLayer.reset_lora_parameters

    def random(self, name, _, **keywords):
        reset(self, name, False, **keywords)

    monkeypatch.setattr(LoraLayer, "reset_lora_parameters", random)
    assert failing() >= {"lora-identity-init", "lora-grad-a-zero"}


def test_they_notice_a_merge_with_another_scale(monkeypatch):
    delta = Linear.get_delta_weight
    monkeypatch.setattr(Linear, "get_delta_weight", lambda *names: 1.000001 * delta(*names))
    assert failing() == {"lora-merge-exact"}


def test_they_notice_norms_of_columns(monkeypatch):
    def norms(self, weight, lora_weight, scaling, adapter_name=None):  # noqa: ARG001
        return (weight + scaling * lora_weight).norm(dim=0).mean().expand(len(weight)).clone()

    monkeypatch.setattr(DoraLinearLayer, "get_weight_norm", norms)
    assert failing() == {"dora-identity-init"}


def test_they_notice_numbers_that_are_not_trained(monkeypatch):
    add = adapted_weights.add_adapters

    def frozen(*arguments):
        model = add(*arguments)
        for name, weight in model.named_parameters():
            if "layers.0.self_attn.q_proj.lora_A" in name or "magnitude" in name:
                weight.requires_grad_(False)
        return model

    monkeypatch.setattr(adapted_weights, "add_adapters", frozen)
    assert failing() == {"lora-memory", "dora-extra-params", "lora-grad-a-zero"}
