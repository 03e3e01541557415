"""A run as a YAML file: what a plan prints is read as the same run."""

import pytest
from typer.testing import CliRunner

from core.cli.main import app
from core.cli.run_options import RunOptions
from core.families.profiles import SCALES
from core.paper.overrides import BadOverride
from core.paper.registry import entries, find_paper
from core.run.sweep import points
from core.settings.resolve import resolve
from core.settings.run_file import RunFile, read_run_file, run_as_yaml
from core.stages.chain import Chain
from eval.errors import BadValue, MissingFile, UnknownName


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("slug", entries())
def test_what_a_plan_prints_sets_nothing_anew(slug, file):
    paper = find_paper(slug)
    arm = [paper.main_arm, *paper.arms][-1]
    for scale in SCALES:
        if not paper.exists_at(arm, scale):
            continue
        resolved = resolve(paper, arm=arm, scale=scale)
        asked = read_run_file(file(run_as_yaml(resolved, 3)))
        assert (asked.paper, asked.at, asked.seed, asked.arguments) == (slug, scale, 3, ())
        assert (asked.arm or paper.main_arm) == arm


def test_what_differs_is_set_as_on_the_command_line(file):
    given = (
        "learning_rate=0.003",
        "benchmarks=('math', 'gsm8k')",
        "eval_limit=None",
        "rewards=Accuracy(right=2.0, wrong=0.0),LengthWithin(limit=9)",
        "twins={'math': 'pocket-math', 'gsm8k': 'pocket-gsm8k'}",
        "lora_target_modules=['q_proj', 'v_proj']",
        "use_peft=True",
    )
    paper = find_paper("dapo")
    told = resolve(paper, arguments=given)
    asked = read_run_file(file(run_as_yaml(told, 0)))
    assert {a.partition("=")[0] for a in asked.arguments} == {a.partition("=")[0] for a in given}
    again = resolve(paper, arguments=asked.arguments)
    assert again.run == told.run
    assert again.config == told.config


def test_a_file_by_hand_says_no_more_than_it_must(file):
    asked = read_run_file(file("paper: gspo\nsettings: {learning_rate: 3e-4, epsilon: 0.0003}\n"))
    assert asked == RunFile(paper="gspo", arguments=("learning_rate=3e-4",))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("- gspo", BadValue, "expected a mapping of paper"),
        ("arm: gspo", BadValue, "of which paper is needed"),
        ("paper: [", BadValue, "is no YAML"),
        ("paper: gspo\nlearning_rate: 1", BadValue, "settings stand below settings:"),
        ("paper: gspo\nseed: many", BadValue, "seed: many: expected a whole number"),
        ("paper: gspo\nsettings: 3", BadValue, "settings: 3: expected a mapping"),
        ("paper: gspoo", UnknownName, "did you mean gspo"),
        ("paper: gspo\narm: grpoo", UnknownName, "no arm 'grpoo'"),
        ("paper: gspo\nsettings: {learning_rat: 1}", UnknownName, "did you mean learning_rate"),
        ("paper: gspo\nsettings: {max_steps: ten}", BadOverride, "expected int"),
    ],
)
def test_a_file_that_is_no_run_is_refused(text, error, words, file):
    with pytest.raises(error, match=words):
        read_run_file(file(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MissingFile, match="repro plan PAPER --yaml"):
        read_run_file(tmp_path / "none.yaml")


def test_points_are_all_combinations():
    assert points(["beta=0,0.1", "loss_type=grpo,dapo"]) == [
        ("beta=0", "loss_type=grpo"),
        ("beta=0", "loss_type=dapo"),
        ("beta=0.1", "loss_type=grpo"),
        ("beta=0.1", "loss_type=dapo"),
    ]
    assert points(["rewards=(Accuracy,Format(share=1)),Noisy(reward=Accuracy,deviation=1)"]) == [
        ("rewards=(Accuracy,Format(share=1))",),
        ("rewards=Noisy(reward=Accuracy,deviation=1)",),
    ]


@pytest.mark.parametrize(
    "sweeps", [["beta"], ["beta=1"], ["beta=1,"], ["beta=1,1"], ["beta=1,2", "beta=3,4"]]
)
def test_a_sweep_without_two_values_is_refused(sweeps):
    with pytest.raises(BadValue, match="two values or more and each name once"):
        points(sweeps)


def test_what_is_given_or_swept_takes_the_place_of_what_a_file_sets(file):
    path = file("paper: gspo\nsettings: {max_steps: 7, learning_rate: 3e-4, epsilon: 0.0003}\n")
    given = ["max_steps = 3", "beta=0.1"]
    asked = RunOptions(settings=given, config=path).requested(["epsilon=0.1,0.2"])
    assert asked.arguments == ("learning_rate=3e-4", *given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["max_steps=1", "max_steps=2"], "BadOverride: max_steps=1 and max_steps=2: leave one"),
        (["rewards=Accuracy", "rewards=Accuracy"], "BadOverride: rewards=Accuracy and rewards="),
        (["launch=ddp", "--launch", "fsdp2"], "BadOverride: launch=ddp and launch=fsdp2: leave"),
        (["max_steps=99999999999999999999"], "BadOverride: max_steps: found an integer of 67 bits"),
        (["learning_rate=1e999"], "BadOverride: learning_rate=inf: expected a finite number"),
        (["--seed", str(2**32)], None),
    ],
)
@pytest.mark.parametrize("command", [["plan"], ["run"], ["run", "--sweep", "beta=0.1,0.2"]])
def test_settings_that_contradict_or_overflow_are_refused_before_anything_is_planned(
    command, arguments, message, tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    done = CliRunner().invoke(app, [*command, "dr-grpo", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("loading ")]
    if message is not None:  # the last is refused by the option itself
        assert [line.startswith(message) for line in lines] == [True]
    assert list(tmp_path.iterdir()) == []


def test_a_swept_setting_is_not_given_too(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    done = CliRunner().invoke(app, ["run", "dr-grpo", "beta=0.3", "--sweep", "beta=0.1,0.2"])
    assert done.exit_code == 2
    assert "BadOverride: beta=0.3 and beta=0.1: leave one of them out" in done.stderr


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_no_generator_takes_is_refused(seed, file):
    asked = read_run_file(file(f"paper: gspo\nseed: {seed}\n"))
    with pytest.raises(BadValue, match=rf"seed {seed}: expected 0 to 4294967295"):
        Chain(resolve(find_paper(asked.paper)), asked.seed)
