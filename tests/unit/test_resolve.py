"""Settings: the order of their sources, and values refused before anything loads."""

from dataclasses import replace

import pytest
from safetensors.torch import save_file

from core.families.grpo import GRPO
from core.families.profiles import SCALES
from core.models.builds import SHIPPED
from core.models.load import load_policy
from core.paper import cite
from core.run.plan import make_plan, parameters_of
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import BadValue, UnknownName
from papers.deepseekmath_grpo import PAPER


def test_later_sources_win_and_say_so():
    found = resolve(PAPER, arm="online-rft", scale="cpu", arguments=("max_steps=7",)).values
    sources = {name: (found[name].value, found[name].source) for name in found}
    assert sources["loss_type"] == ("grpo", "deepseekmath-grpo s4.1.1 eq. 3")
    assert sources["beta"] == (0.0, "arm online-rft")
    assert sources["learning_rate"] == (GRPO.profiles["cpu"]["learning_rate"], "profile cpu")
    assert sources["num_generations"] == (16, "deepseekmath-grpo at cpu")
    assert sources["max_steps"] == (7, "command line")


LADDER = ("profile cpu", "ladder at cpu", "arm main", "arm main at cpu", "command line")


@pytest.mark.parametrize("last", range(len(LADDER)))
def test_of_all_sources_of_one_setting_the_last_wins(last):
    """Every source up to `last` sets the learning rate to a number of its own."""
    rates = {"profile cpu": GRPO.profiles["cpu"]["learning_rate"]}
    rates |= {source: 10.0**-step for step, source in enumerate(LADDER[1 : last + 1])}
    said = {source: {"learning_rate": rate} for source, rate in rates.items()}
    ladder = replace(
        PAPER,
        slug="ladder",
        config=(cite("s1", learning_rate=2.0),),
        profiles={"cpu": said.get("ladder at cpu", {})},
        arms={"main": {**said.get("arm main", {}), "at": {"cpu": said.get("arm main at cpu", {})}}},
    )
    given = tuple(f"{n}={v}" for n, v in said.get("command line", {}).items())
    found = resolve(ladder, arguments=given).values["learning_rate"]
    assert (found.source, found.value) == (LADDER[last], rates[LADDER[last]])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("arm", PAPER.arms)
def test_an_arm_differs_from_the_main_arm_by_what_it_changes_and_nothing_else(arm, scale):
    def values(arm):
        return {n: v.value for n, v in resolve(PAPER, arm=arm, scale=scale).values.items()}

    assert values(arm) == values("grpo") | PAPER.changes(arm) | PAPER.changes(arm, scale)


def test_what_an_arm_changes_at_one_scale_changes_no_other():
    arms = {"main": {"beta": 0.1, "at": {"gpu": {"beta": 0.2, "epsilon": 0.3}}}}
    paper = replace(PAPER, arms=arms, claims=())
    betas = [resolve(paper, scale=scale).config["beta"] for scale in SCALES]
    assert betas == [0.1, 0.2, 0.1]
    assert resolve(paper, scale="gpu").values["epsilon"].source == "arm main at gpu"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"arms": {"main": {"at": {"gpuu": {"beta": 0.1}}}}}, "no scale 'gpuu'"),
        ({"profiles": {"cpuu": {"beta": 0.1}}}, "no scale 'cpuu'"),
        ({"arms": {"main": {}, "other": {"same_as": "mian"}}}, "no arm 'mian'"),
    ],
)
def test_a_scale_or_an_arm_that_a_paper_names_and_is_not_is_refused(changes, wrong):
    paper = replace(PAPER, **changes)
    with pytest.raises(UnknownName, match=wrong):
        resolve(paper, arm=next(reversed(paper.arms)))


def test_at_paper_scale_the_settings_are_the_papers():
    found = resolve(PAPER, scale="paper")
    config = found.preview()
    assert (config.learning_rate, config.beta, config.num_generations) == (1e-6, 0.04, 64)
    assert config.generation_batch_size == 1024
    assert found.run.model == "deepseek-ai/deepseek-math-7b-instruct"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("loss_type=grop",), "loss_type='grop' \\(command line\\): expected 'grpo'"),
        (("learning_rate=-1",), "learning_rate=-1.0 .*expected at least 0"),
        (("num_generations=0",), "num_generations=0 .*expected at least 1"),
        (("eval_limit=0",), "eval_limit=0: expected at least 1"),
        (("max_steps=-5",), "max_steps=-5 .*expected at least -1"),
        (("max_steps=0",), "max_steps=0 .command line.: .*at least 1, or -1 for all of the epochs"),
        (("num_train_epochs=0",), "num_train_epochs=0.0 .*: nothing would be trained"),
        (("num_train_epochs=-2",), "num_train_epochs=-2.0 .*expected at least 0"),
        (("weight_decay=-1",), "weight_decay=-1.0 .*expected at least 0"),
        (("max_stepps=3",), "did you mean max_steps"),
        (("seed=5",), "seed=5 is no setting of a run: give --seed"),
        (("push_to_hub=true",), "push_to_hub=True is no setting of a run: give --push-to-hub"),
        (("resume_from_checkpoint=x",), "the same command continues by itself"),
        (("adam_beta1=5",), "adam_beta1=5.0 .*expected at least 0, and below 1"),
        (("dataloader_num_workers=-1",), "dataloader_num_workers=-1 .*expected at least 0"),
        (("output_dir=here",), "output_dir=here is no setting of a run: give REPRO_ROOT"),
    ],
)
def test_a_bad_value_stops_before_anything_loads(arguments, message):
    with pytest.raises((BadValue, UnknownName), match=message):
        resolve(PAPER, arguments=arguments)


def test_values_that_do_not_go_together_are_one_error():
    with pytest.raises(BadValue, match="no multiple of num_generations=16"):
        resolve(PAPER, arguments=("per_device_train_batch_size=24",)).preview()
    with pytest.raises(BadValue, match="compares completions of a prompt, expected at least 2"):
        resolve(PAPER, arguments=("num_generations=1",)).preview()


def test_a_paper_with_a_wrong_field_is_refused_with_the_nearest_name():
    wrong = replace(PAPER, config=(cite("s1", epsilon_hgih=0.3),))
    with pytest.raises(UnknownName, match="did you mean epsilon_high"):
        resolve(wrong)


@pytest.mark.parametrize(
    ("names", "wrong"), [({"arm": "gropo"}, "grpo"), ({"scale": "gpuu"}, "gpu")]
)
def test_unknown_arms_and_scales_name_the_nearest(names, wrong):
    with pytest.raises(UnknownName, match=f"did you mean {wrong}"):
        resolve(PAPER, **names)


def test_keys_follow_what_is_computed_and_ignore_how_it_is_watched():
    def key(*arguments, seed=0, arm=None):
        return Chain(resolve(PAPER, arm=arm, arguments=arguments), seed).train.key

    assert key() == key("report_to=wandb", "save_steps=1") == key("beta=0.04")
    keys = {key(), key(seed=1), key("beta=0.05"), key(arm="rft"), key("heldout_every=2")}
    assert len(keys) == 5


def test_a_plan_knows_the_cost_and_the_stages():
    plan = make_plan(resolve(PAPER, arguments=("max_steps=10",)), 0)
    assert plan.cost["completions"] == 1280
    assert (
        plan.cost["sampled tokens, at most"] == 1280 * GRPO.profiles["cpu"]["max_completion_length"]
    )
    assert [stage.name for stage, _ in plan.stages][:3] == ["data", "start", "train"]
    assert {state for _, state in plan.stages} <= {"done", "to do"}


def number_of_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_plan_counts_the_parameters_of_a_shipped_model(name):
    assert parameters_of(name) == number_of_parameters(load_policy(name))


@pytest.mark.parametrize("tied", [True, False])
def test_a_plan_counts_a_tied_head_once_also_where_the_file_holds_it_twice(
    tied, build_llama, tmp_path
):
    model = build_llama(tie_word_embeddings=tied)
    for name, twice in (("once", False), ("twice", True)):
        folder = tmp_path / name
        model.save_pretrained(folder)
        if twice:
            tensors = {key: tensor.clone() for key, tensor in model.state_dict().items()}
            save_file(tensors, folder / "model.safetensors")
        assert parameters_of(str(folder)) == number_of_parameters(model)


def test_a_plan_at_paper_scale_counts_what_the_data_gives():
    """The problems of GSM8K and MATH, 16 an update, each answered 64 times in 1,024 tokens."""
    cost = make_plan(resolve(PAPER, scale="paper"), 0).cost
    updates = (7473 + 7500) // 16
    assert cost["updates"] == updates
    assert cost["sampled tokens, at most"] == updates * 1024 * 1024
    unknown = make_plan(resolve(PAPER, scale="paper", arguments=("data=math-level-3-5",)), 0).cost
    assert (unknown["updates"], unknown["completions"]) == ("as many as the data gives", None)


@pytest.mark.parametrize(
    ("said", "scale"),
    [("none", "none"), ("false", "none"), ("False", "none"), ("true", "group"), ("batch", "batch")],
)
def test_the_scale_of_rewards_is_said_as_the_config_takes_it(said, scale):
    found = resolve(PAPER, arguments=(f"scale_rewards={said}",))
    assert found.values["scale_rewards"].value == found.preview().scale_rewards == scale
