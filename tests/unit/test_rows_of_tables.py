"""A method's name is known by its row alone: nobody compares it, and settings follow from rows."""

import ast
from pathlib import Path

import pytest
from grpo_runs import of_loss

import core
from core import GRPOConfig, SFTConfig
from core.configs.base import BaseConfig
from core.configs.engines import ENGINES, ROLLOUT_POLICIES, VLLM_MODES
from core.configs.sft import PACKINGS
from core.losses.advantages import SCALES
from core.losses.aggregate import AGGREGATES, TOKEN_NORMALIZERS
from core.losses.entropy import ENDS, NORMALIZERS
from core.losses.estimators import ESTIMATORS, NEEDS, Estimator
from core.losses.kl import ESTIMATORS as KL_ESTIMATORS
from core.losses.policy import LOSS_TYPES
from core.losses.ratio import RATIOS
from core.losses.sampling import MODES
from core.losses.selection import SELECTIONS
from core.losses.supervised import SUPERVISED
from eval.errors import BadValue

CHOICES = {**GRPOConfig.CHOICES, **SFTConfig.CHOICES}
KEYS = {key for choices in CHOICES.values() for key in choices} | set(SUPERVISED) | set(LOSS_TYPES)
ROOMS = ("trainers", "collect", "forward", "shards", "losses", "configs")
CORE = Path(core.__file__).parent
TABLES = {
    (GRPOConfig, "loss_type"): LOSS_TYPES,
    (GRPOConfig, "importance_sampling_level"): RATIOS,
    (GRPOConfig, "scale_rewards"): SCALES,
    (GRPOConfig, "advantage_estimator"): ESTIMATORS,
    (GRPOConfig, "kl_estimator"): KL_ESTIMATORS,
    (GRPOConfig, "token_normalizer"): TOKEN_NORMALIZERS,
    (GRPOConfig, "loss_aggregate"): {None: None, **AGGREGATES},
    (GRPOConfig, "top_entropy_tokens"): ENDS,
    (GRPOConfig, "top_entropy_normalizer"): NORMALIZERS,
    (GRPOConfig, "vllm_importance_sampling_mode"): MODES,
    (GRPOConfig, "rollout_policy"): ROLLOUT_POLICIES,
    (GRPOConfig, "rollout_engine"): ENGINES,
    (GRPOConfig, "rollout_selection"): SELECTIONS,
    (GRPOConfig, "vllm_mode"): VLLM_MODES,
    (SFTConfig, "loss_type"): SUPERVISED,
    (SFTConfig, "packing_strategy"): PACKINGS,
}


def words(node):
    """The texts in a constant or in a collection of constants."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.value for part in parts if isinstance(part, ast.Constant)}


def named(node):
    """The name of a variable, of an attribute or of a key."""
    if isinstance(node, ast.Subscript):
        return named(node.slice)
    return getattr(node, "attr", getattr(node, "id", getattr(node, "value", None)))


def comparisons(source):
    """What each comparison has on its sides: the names, and the texts; `endswith` is one too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(n for case in node.cases for n in ast.walk(case.pattern))]
            sides = [getattr(side, "value", side) for side in sides]
        elif isinstance(node, ast.Call) and named(node.func) in ("startswith", "endswith"):
            sides = [node.func.value, *node.args]
        else:
            continue
        texts = set().union(*(words(side) for side in sides))
        names = {named(s) for s in sides if isinstance(s, ast.Name | ast.Attribute | ast.Subscript)}
        yield node.lineno, names, {text for text in texts if isinstance(text, str)}


def offences(source, room):
    """Lines that compare a setting of a table with a text, or in these rooms anything with a key.

    A call's result, such as a text in lower case, is no name of a method.
    """
    return [
        line
        for line, names, texts in comparisons(source)
        if (texts and names & CHOICES.keys()) or (room in ROOMS and names and texts & KEYS)
    ]


@pytest.mark.parametrize("room", sorted(p.name for p in CORE.iterdir() if p.is_dir()))
def test_no_name_of_a_method_is_compared(room):
    files = sorted((CORE / room).rglob("*.py"))
    found = {str(f): lines for f in files if (lines := offences(f.read_text(), room))}
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "args.loss_type == 'new'",
        "'new' != args.loss_type",
        "row['loss_type'] == 'new'",
        "kind in ('grpo', 'other')",
        "args.vllm_importance_sampling_mode.endswith('_truncate')",
        "match engine:\n    case 'hf': pass",
    ],
)
def test_a_comparison_is_seen(source):
    assert offences(source, "trainers") == [1]


@pytest.mark.parametrize(("config", "name"), TABLES)
def test_choices_and_help_are_the_rows(config, name):
    table = TABLES[config, name]
    assert config.CHOICES[name] == tuple(table)
    words = config.__dataclass_fields__[name].metadata["help"]
    assert all(f"'{key}', {row.doc}" in words for key, row in table.items() if key is not None)
    assert "%" not in words  # argparse would format it


CHOOSERS = {
    "loss_type": LOSS_TYPES,
    "loss_aggregate": AGGREGATES,
    "advantage_estimator": ESTIMATORS,
    "rollout_selection": SELECTIONS,
}
PARAMETERS = [
    (choice, key, name, name in row.parameters)
    for choice, table in CHOOSERS.items()
    for key, row in table.items()
    for name in sorted({name for other in table.values() for name in other.parameters})
]
OTHER = {
    "epsilon": 0.5,
    "kl_coef": 0.1,
    "scale_rewards": "batch",
    "epsilon_high": 0.5,
    "delta": 4.0,
    "sapo_temperature_neg": 2.0,
    "sapo_temperature_pos": 2.0,
    "vespo_k_neg": 1.5,
    "vespo_k_pos": 1.5,
    "vespo_lambda_neg": 1.5,
    "vespo_lambda_pos": 1.5,
    "token_normalizer": "step",
    "multi_objective_aggregation": "normalize_then_sum",
    "selection_draws": 3,
    "selection_fills_up": True,
    "selection_kept": 2,
    "selection_reward": "accuracy",
}


NEEDED = {"shortest": ["selection_kept"], "efficient": ["selection_kept"]}


@pytest.mark.parametrize(("choice", "key", "name", "taken"), PARAMETERS)
def test_a_parameter_acts_or_is_refused(choice, key, name, taken, tmp_path):
    level = of_loss(key) if key in LOSS_TYPES else {"loss_type": "grpo"}
    settings = {"output_dir": str(tmp_path), "use_cpu": True, **level, choice: key}
    settings |= {n: OTHER[n] for n in NEEDED.get(key, ())} | {name: OTHER[name]}
    if taken:
        assert getattr(GRPOConfig(**settings), name) == OTHER[name]
        return
    with pytest.raises(BadValue, match=f"{name}=.*: {choice}='{key}' does not take it, only "):
        GRPOConfig(**settings)


def test_a_ratio_that_a_loss_is_not_defined_for_is_refused(monkeypatch, tmp_path):
    row = LOSS_TYPES["grpo"].__class__(**{**vars(LOSS_TYPES["grpo"]), "levels": ("token",)})
    monkeypatch.setitem(LOSS_TYPES, "grpo", row)
    settings = {"output_dir": str(tmp_path), "use_cpu": True, "loss_type": "grpo"}
    GRPOConfig(**settings)
    with pytest.raises(BadValue, match="loss_type='grpo' takes 'token'"):
        GRPOConfig(**settings, importance_sampling_level="sequence")


@pytest.mark.parametrize("need", sorted(NEEDS.keys() - {*core.GRPOTrainer.gives}))
def test_what_an_estimator_needs_is_checked_when_the_trainer_is_made(need, make_grpo, monkeypatch):
    row = Estimator(advantages=lambda scored, _: scored.rewards[:, 0], doc="new", needs=(need,))
    monkeypatch.setitem(ESTIMATORS, "new", row)
    monkeypatch.setattr(
        GRPOConfig, "CHOICES", {**GRPOConfig.CHOICES, "advantage_estimator": tuple(ESTIMATORS)}
    )
    with pytest.raises(BadValue, match=f"advantage_estimator='new' needs {NEEDS[need][:9]}"):
        make_grpo(advantage_estimator="new")


def test_bounds_and_choices_of_shared_settings_reach_the_config():
    for cls in (GRPOConfig, SFTConfig):
        for base in cls.__mro__:
            if issubclass(base, BaseConfig):
                assert set(base.CHOICES) <= set(cls.CHOICES)
                assert set(base.AT_LEAST) <= set(cls.AT_LEAST)
                assert set(base.UNSUPPORTED) <= set(cls.UNSUPPORTED)
