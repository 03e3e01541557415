"""A step on two processes is the step of one, and the processes share what they were told to."""

from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import load_file
from same_batch import differences, weights_of
from two_processes import CASES, launch, run, save_models

from core.settings.memory import states
from core.settings.run_settings import LAUNCHES

BOUND = 4e-5
# Which weights lie where depends on the model, on the models beside it, and on the rows of a step:
# quick runs train a case of each.
QUICK = ("sft", "averaged", "reward", "taught", "selected", "sampled", "resumed")
OTHERS = CASES.keys() - set(QUICK)
SHARED = [pytest.param(case, marks=pytest.mark.long) if case in OTHERS else case for case in CASES]
CLASSIFIERS = {
    "reward": "SequenceClassification",
    "prm": "TokenClassification",
    "verifier": "TokenClassification",
}
PLACES = {
    "ddp": ("DistributedDataParallel", "", ""),
    "fsdp2": ("FSDPLlamaFor{}", "(Shard(dim=0),)", ""),
    "zero1": ("DeepSpeedEngine", "", ""),
    "zero2": ("DeepSpeedEngine", "", ""),
    "zero3": ("DeepSpeedEngine", "", "NOT_AVAILABLE"),
}


@pytest.fixture(scope="module")
def folder(build_llama, tiny_tokenizer, tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("two"), build_llama, tiny_tokenizer)


@pytest.fixture(scope="module")
def cases(request):
    """Return the cases of quick runs, and each other case with a selected test."""
    parameters = [getattr(item, "callspec", None) for item in request.session.items]
    selected = {found.params.get("case") for found in parameters if found is not None}
    return [case for case in CASES if case not in OTHERS or case in selected]


@pytest.fixture(scope="module")
def alone(folder, cases):
    return {case: run(case, folder, folder / "one") for case in cases}


ALL_BUT_ZERO1 = [launch for launch in LAUNCHES if launch != "zero1"]


@pytest.fixture(
    scope="module", params=[*ALL_BUT_ZERO1, pytest.param("zero1", marks=pytest.mark.long)]
)
def pair(request, folder, cases):
    if request.param.startswith("zero") and find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed: ZeRO is NOT tested; pip install '.[deepspeed]'")
    return request.param, launch(request.param, folder, cases)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_two_processes_change_nothing(case, pair, alone, build_llama):
    one, (two, _) = alone[case], pair[1]
    assert len(one[0]) == 4
    assert one[0][:, 1].min() > 1e-3  # a gradient at every step
    begun = weights_of(build_llama())  # a head of scores comes after them
    assert (one[1][: len(begun)] - begun).abs().max() > 20 * BOUND
    loss, norm, weights = differences([one[:2], two[case][:2]])
    assert loss < BOUND
    assert norm < BOUND * max(1.0, one[0][:, 1].max())
    assert weights < BOUND


@pytest.mark.parametrize("case", SHARED)
def test_the_model_is_really_shared(case, pair):
    """Accelerate trains plain replicas on a CPU and says nothing, with the same numbers."""
    name, (first, second) = pair
    wrapper, *places = PLACES[name]
    for held in (first[case][2], second[case][2]):
        assert held["wrapper"] == wrapper.format(CLASSIFIERS.get(case, "CausalLM"))
        assert [held["placements"], held["status"]] == places


def test_a_shared_model_is_packed(pair, cases):
    """Its layers may be of classes that the sharding has made, and padding takes their place."""
    assert all(seen[case][2]["packed"] for seen in pair[1] for case in cases)


def test_each_process_holds_what_the_plan_says(pair, build_llama):
    """Up to the padding of what does not divide: bytes of weights, gradients and optimiser."""
    name, both = pair
    parameters = build_llama().num_parameters()
    weights, gradients, optimiser = states(name, parameters, 2, bf16=False)
    given = gradients / 2 if name == "zero1" else gradients  # whole until the step, then a slice
    for seen in both:
        held = seen["sft"][2]
        found = [4 * held[what] for what in ("weights", "gradients", "optimiser")]
        assert found == pytest.approx([weights, given, optimiser], rel=0.01)


def test_a_resumed_run_is_the_same_run(pair, alone):
    """From within a rollout, with a moved reference: weights, optimiser and reference are back."""
    for seen in (alone, *pair[1]):
        assert torch.equal(seen["resumed"][1], seen["sampled"][1])


def test_both_processes_end_with_one_model(pair, cases):
    first, second = pair[1]
    for case in cases:
        assert torch.equal(first[case][1], second[case][1])


def test_the_average_of_two_processes_is_that_of_one(pair, alone, folder, build_llama):
    del alone  # has written its own
    paths = [folder / "one", *sorted((folder / pair[0]).iterdir())[:1]]
    one, two = (load_file(path / "bema/model.safetensors") for path in paths)
    start = dict(build_llama().named_parameters())
    assert one.keys() == two.keys()
    assert max((one[n] - two[n]).abs().max() for n in one) < BOUND
    assert max((one[n] - start[n]).abs().max() for n in start) > 20 * BOUND
