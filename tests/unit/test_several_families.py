"""Settings of the command line over arms of several families act where they are read."""

import pytest
from run_records import run_record

from core.families.table import find_family
from core.paper.overrides import UnknownField
from core.paper.registry import whole_papers
from core.run.request import Order
from core.run.work import validate_order
from core.settings.layers import arguments_of, readable
from core.settings.resolve import resolve
from core.verdicts.unmeasured import untested_claims
from core.verdicts.verdict_records import verdicts_record
from eval.errors import BadValue
from papers.deepseekmath_grpo import PAPER as GRPO
from papers.gsm8k_verifiers import PAPER as VERIFIERS

BOTH = ("main", "verifier")
OF_MAIN, OF_VERIFIER, OF_BOTH = "eval_limit=2", "lm_coef=0.5", "eval_max_tokens=24"


def chains_of(*arguments, arms=BOTH, paper=VERIFIERS):
    work = validate_order(Order(paper=paper, arms=arms, arguments=arguments))
    return {chain.resolved.arm: chain.resolved for chain in work.chains}


def test_a_setting_acts_on_the_arms_whose_family_reads_it_and_the_others_are_named(capfd):
    resolved = chains_of(OF_MAIN, OF_VERIFIER, OF_BOTH)
    assert resolved["main"].arguments == (OF_MAIN, OF_BOTH)
    assert resolved["main"].run.eval_limit == 2
    assert resolved["verifier"].arguments == (OF_VERIFIER, OF_BOTH)
    assert resolved["verifier"].preview().lm_coef == 0.5
    said = capfd.readouterr().err
    assert "arm main leaves out lm_coef: its family evaluation does not read it" in said
    assert "arm verifier leaves out eval_limit: its family verifier does not read it" in said


def test_arms_of_one_family_leave_nothing_out(capfd):
    chains_of("num_generations=8", arms=("grpo", "process"), paper=GRPO)
    assert "leaves out" not in capfd.readouterr().err


def test_a_setting_that_no_arm_of_the_order_reads_is_refused():
    with pytest.raises(BadValue, match=r"eval_limit=2 .*the family verifier"):
        chains_of(OF_MAIN, arms=("verifier",))
    with pytest.raises(UnknownField, match="lm_coef"):
        chains_of(OF_VERIFIER, arms=("main",))
    with pytest.raises(UnknownField, match="learning_rat"):
        chains_of("learning_rat=1e-3")


@pytest.mark.parametrize(
    "paper", [one for one in whole_papers() if one.arms], ids=lambda one: one.slug
)
def test_every_setting_of_a_family_reaches_its_arms_alone(paper):
    arms = tuple(paper.arms)
    families = {arm: readable(paper.family_of(arm)) for arm in arms}
    for names in {frozenset(names) for names in families.values()}:
        arguments = tuple(f"{name}=1" for name in sorted(names))
        for arm in arms:
            taken = arguments_of(paper, arm, arguments, arms)
            assert {text.partition("=")[0] for text in taken} == names & families[arm]


def test_an_arm_beside_one_that_trains_nothing_keeps_the_steps_of_its_regime():
    resolved = resolve(VERIFIERS, arm="verifier")
    assert not find_family(VERIFIERS.family).trains
    assert resolved.values["max_steps"].source == "regime digits-solutions"


def test_claims_are_tested_with_the_settings_that_each_arm_reads():
    main = resolve(VERIFIERS)
    assert "gsm-vote-top" not in untested_claims(main, (OF_MAIN, OF_VERIFIER))
    assert "gsm-vote-top" in untested_claims(main, ("heldout_problems=0",))


def test_verdicts_have_the_settings_of_all_their_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    runs = [
        run_record(3, arm="grpo", overrides={"num_generations": 4}),
        run_record(3, arm="online-rft", overrides={"max_steps": 2}),
    ]
    record = verdicts_record(GRPO, "cpu", runs)
    assert record["overrides"] == {"num_generations": 4, "max_steps": 2}
