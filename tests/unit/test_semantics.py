"""`semantics`: whose defaults a training has, and that what a release lacks is refused."""

import copy
import pickle
from dataclasses import dataclass, fields

import pytest

from core import GRPOConfig
from core.configs.parser import TrlParser
from core.configs.releases import CHANGES, RELEASES, SEMANTICS, TRL, later_changes
from core.settings.resolve import resolve
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER

QUIET = {"output_dir": "unused", "use_cpu": True, "report_to": "none"}
PLAIN = {each.name: each.default for each in fields(GRPOConfig)}


@dataclass
class Own(GRPOConfig):
    """Of a script with a default of its own."""

    beta: float = 0.2


def config(semantics, kind=GRPOConfig, **given):
    return kind(**QUIET, **({"bf16": False} | given), semantics=semantics)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_what_nobody_gave_is_that_of_the_release_and_what_was_given_stays(semantics):
    found = config(semantics)
    for name, value in SEMANTICS[semantics].items():
        assert getattr(found, name) == value
    lacks = {n for change in later_changes(semantics).values() for n in change.fields}
    loss = {"loss_type", "token_normalizer"} if "loss_type" in SEMANTICS[semantics] else set()
    given = {n: PLAIN[n] for n in SEMANTICS[semantics].keys() - lacks - loss}
    kept = config(semantics, **given)
    assert {n: getattr(kept, n) for n in given} == {
        n: {"pad_to_multiple_of": None, "bf16": True}.get(n, value) for n, value in given.items()
    }
    assert config(semantics, Own).beta == 0.2


def test_it_is_trls_newest_unless_a_paper_asks():
    assert SEMANTICS[GRPOConfig.semantics] == {}
    assert resolve(PAPER).preview().semantics == "paper"
    older = resolve(PAPER, arguments=("semantics=trl==1.9",)).preview()
    assert (older.semantics, older.token_normalizer) == ("trl==1.9", "whole_rollout")
    assert older.max_completion_length == resolve(PAPER).preview().max_completion_length


def test_copies_and_later_settings_act_as_if_they_were_given_at_once():
    made = config("trl==0.18")
    for other in (copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert other.given_fields == made.given_fields
        other.beta = PLAIN["beta"]
        other.settle()
        assert (other.beta, other.loss_type) == (PLAIN["beta"], "bnpo")
        other.semantics = "trl==1.16"
        other.settle()
        assert (other.beta, other.loss_type) == (PLAIN["beta"], "dapo")


@pytest.mark.parametrize(
    ("semantics", "given", "release"),
    [
        ("trl==0.21", {"loss_type": "dapo"}, "0.22"),
        ("trl==0.25", {"loss_type": "cispo", "epsilon_high": 5.0}, "0.26"),
        ("trl==0.17", {"delta": 1.5}, "0.18"),
        ("trl==0.22", {"vllm_importance_sampling_cap": 2.0}, "0.23"),
        ("trl==1.9", {"entropy_coef": 0.1}, "1.10"),
        ("trl==0.19", {"importance_sampling_level": "sequence"}, "0.20"),
    ],
)
def test_what_the_release_lacks_is_refused(semantics, given, release):
    with pytest.raises(BadValue, match=f"set semantics='trl=={release}' or a later one") as error:
        config(semantics, **given)
    assert "\n" not in str(error.value)
    assert config(f"{TRL}{release}", **given)


def test_an_unknown_release_is_refused():
    with pytest.raises(BadValue, match=r"semantics='trl==0\.16': expected one of 'paper'"):
        config("trl==0.16")
    assert CHANGES.keys() <= {*RELEASES}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--semantics", "trl==0.18"], (0.04, "bnpo")),
        (["--semantics", "trl==0.18", "--beta", "0"], (0.0, "bnpo")),
        ([], (0.0, "dapo")),
    ],
)
def test_the_command_line_has_its_defaults(words, expected):
    base = ["--output_dir", "unused", "--use_cpu", "--bf16", "false", "--report_to", "none"]
    (found,) = TrlParser(GRPOConfig).parse_args_and_config([*base, *words])
    assert (found.beta, found.loss_type) == expected


def test_a_file_wins_over_the_release_it_names(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("semantics: trl==0.18\ntemperature: 0.7\nuse_cpu: true\nbf16: false\n")
    words = ["--output_dir", "unused", "--report_to", "none", "--config", str(path)]
    (found,) = TrlParser(GRPOConfig).parse_args_and_config(words)
    assert (found.beta, found.temperature, found.loss_type) == (0.04, 0.7, "bnpo")
