"""Worlds: their regimes, starting models of a seed that arms and papers share, and plug-ins."""

from dataclasses import replace

import pytest

from core.families.worlds import POCKET, WORLDS, find_world, world_of_regime
from core.models.builds import UNTRAINED, build_of, untrained_seed
from core.models.load import load_policy, load_tokenizer
from core.paper import cite
from core.settings.effective import effective
from core.settings.resolve import resolve
from core.stages.chain import Chain
from eval.errors import UnknownName
from papers.dapo import PAPER as DAPO
from papers.dft import PAPER as DFT
from papers.dpo import PAPER as DPO
from papers.dr_grpo import PAPER as DR_GRPO
from papers.llama_2_margin import PAPER as LLAMA_2_MARGIN
from papers.lora import PAPER as LORA
from papers.nca import PAPER as NCA
from papers.ppo import PAPER as PPO
from papers.prm import PAPER as PRM
from papers.reward_centering import PAPER as REWARD_CENTERING
from papers.rloo import PAPER as RLOO
from papers.sdft import PAPER as SDFT

NANO = [name for name in WORLDS if name != "pocket"]


def chain(paper, regime, seed, **changes):
    arms = {paper.main_arm: {"regime": regime, **changes}}
    return Chain(resolve(replace(paper, arms=arms, claims=())), seed)


def cited(**settings):
    """Return the paper of models of steps with other citations."""
    return replace(PRM, config=(cite("elsewhere", **settings),), trl_index={}, trl_reasons=())


def papers_and_change(settings):
    """Return two papers whose main arm trains in a regime, and a change of their loss."""
    if "steps_per_generation" in settings:
        return (DAPO, DR_GRPO), {"loss_type": "dr_grpo"}
    if "step_separator" in settings:
        return (PRM, cited(learning_rate=3.0)), {"train_on_last_step_only": True}
    if settings["data"] == "prepared:digits-many-solutions":
        return (
            replace(cited(), family="verifier"),
            replace(cited(max_length=5), family="verifier"),
        ), {"lm_coef": 0.5}
    if settings["data"].startswith("prepared:"):
        return (NCA, DPO), {"loss_type": "hinge"}
    if "pairs" in settings["data"]:
        return (LLAMA_2_MARGIN, REWARD_CENTERING), {"center_rewards_coefficient": 0.5}
    return (DFT, LORA), {"loss_type": "dft"}


@pytest.mark.parametrize(
    ("regime", "settings"),
    [pair for name in NANO for pair in WORLDS[name].regimes.items()],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_arm_without_changes_is_one_training_whatever_the_paper_cites(regime, settings):
    papers, change = papers_and_change(settings)
    one, other = (chain(paper, regime, 20) for paper in papers)
    assert one.train.key == other.train.key
    assert one.resolved.values["learning_rate"].value == settings["learning_rate"]
    assert [stage.key for stage in one.preparations] == [stage.key for stage in other.preparations]
    assert chain(papers[1], regime, 20, **change).train.key != one.train.key


def test_a_regime_that_a_profile_names_is_that_of_its_arms_in_a_bare_world():
    named = replace(DPO, arms={"dpo": {}}, claims=(), profiles={"cpu": {"regime": "choice-pairs"}})
    resolved = resolve(named)
    assert (resolved.world.name, resolved.run.data) == ("choice", "prepared:choice-pairs")
    assert Chain(resolved, 20).train.key == chain(DPO, "choice-pairs", 20).train.key


def test_papers_of_pairs_share_those_of_a_start_in_the_pocket_world():
    one, other, later = (
        chain(paper, "pairs", seed) for paper, seed in ((DPO, 1), (NCA, 1), (DPO, 2))
    )
    keys = [[stage.key for stage in each.preparations] for each in (one, other, later)]
    assert keys[0] == keys[1] != keys[2]
    assert one.train.key != other.train.key
    resolved = resolve(DPO, arguments=("regime=pairs",))
    assert (resolved.world, resolved.values["beta"].value) == (POCKET, 2.0)


def test_papers_of_one_loss_have_one_training_on_revised_solutions():
    """DPO cites another optimizer than NCA does."""
    one, other = (chain(p, "revised", 1, loss_type="sigmoid") for p in (DPO, NCA))
    assert one.train.key == other.train.key
    assert chain(NCA, "revised", 1).train.key != one.train.key
    assert chain(DPO, "revised", 2).train.key != one.train.key


def test_what_stands_beside_a_regime_in_a_profile_acts_and_an_arm_with_a_regime_is_without_it():
    beside = {"regime": "choice-pairs", "beta": 0.7, "heldout_every": 8}
    arms = {"dpo": {}, "other": {"regime": "choice-pairs"}}
    paper = replace(DPO, arms=arms, claims=(), profiles={"cpu": beside})
    one, other = (resolve(paper, arm=arm) for arm in arms)
    assert (one.values["beta"].value, one.run.heldout_every) == (0.7, 8)
    changed = chain(DPO, "choice-pairs", 20, beta=0.7, heldout_every=8)
    assert Chain(one, 20).train.key == changed.train.key
    assert Chain(other, 20).train.key == chain(DPO, "choice-pairs", 20).train.key


@pytest.mark.parametrize("paper", [RLOO, PPO])
def test_other_families_start_from_the_same_model_without_a_kl(paper):
    run, grpo = (chain(one, "choice", 20) for one in (paper, DAPO))
    assert run.start.key == grpo.start.key
    assert not run.resolved.preview().reads_reference
    assert run.resolved.preview().num_iterations == 1


def test_a_seed_has_a_start_and_problems_of_its_own():
    one, same, other = (chain(DAPO, "choice", seed) for seed in (20, 20, 21))
    assert one.train.key == same.train.key
    keys = [{stage.key for stage in run.preparations} for run in (one, other)]
    assert not keys[0] & keys[1]
    assert one.data.key != other.data.key
    assert [e.question.draw for e in one.evaluations(one.policy)] == [20]
    assert [e.question.decoding.temperature for e in one.evaluations(one.policy)] == [1.0]


def test_the_long_regime_starts_from_a_policy_that_the_first_one_trained_for_80_updates():
    long, length = (chain(DAPO, regime, 20) for regime in ("length-long", "length"))
    names = [(stage.name, getattr(stage, "seed", None)) for stage in long.preparations]
    assert names == [("data", None), ("start", None), ("train", 20)] * 2
    grown = long.prepared["length-grown"]
    assert grown.train.inputs["config"] == length.train.inputs["config"] | {"max_steps": 80}
    assert grown.start.key == length.start.key


def test_a_model_with_random_weights_is_drawn_by_the_seed():
    names = [build_of(UNTRAINED, seed) for seed in (20, 20, 21)]
    same, again, other = (load_policy(name).state_dict() for name in names)
    assert untrained_seed(names[0]) == 20
    weight = "model.layers.0.mlp.up_proj.weight"
    assert same[weight].equal(again[weight])
    assert not same[weight].equal(other[weight])
    assert load_policy(names[0]).num_parameters() == 86_592
    tokenizer = load_tokenizer(names[0])
    messages = [{"role": "user", "content": "aQ.+-="}, {"role": "assistant", "content": "37"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    assert text == "aQ.+-=37" + tokenizer.eos_token
    assert len(tokenizer(text)["input_ids"]) == 9
    assert untrained_seed("pocket-instruct") is None


def test_teachers_and_students_of_a_seed_are_trained_on_demonstrations_of_their_own():
    def key(name, seed):
        [_, _, train] = chain(DFT, "chain-even", seed, model=f"prepared:{name}").preparations
        return train.key

    names = WORLDS["chain"].preparations
    alike = {key(f"{regime}-teacher", 20) for regime in ("chain", "chain-even", "chain-failing")}
    assert len(alike) == 1
    assert len({key(name, seed) for name in names for seed in (20, 21)}) == 2 * (len(names) - 2)
    for regime in ("chain", "chain-even"):
        run = chain(DFT, regime, 20)
        assert run.start.key == chain(DAPO, regime, 20).start.key
        assert run.resolved.run.data == f"nano-{regime}-demonstrations"
        assert [*run.prepared] == [f"{regime}-start"]
        begun = run.prepared[f"{regime}-start"].resolved.run
        assert (begun.model, begun.data) == (UNTRAINED, f"nano-{regime}-fallible")


def test_students_with_and_without_demonstrations_share_a_start_that_has_seen_hints():
    def key(name, seed):
        [_, _, train] = chain(
            DFT, "hinted-style-given", seed, model=f"prepared:{name}"
        ).preparations
        return train.key

    names = WORLDS["hinted"].preparations
    assert len({key(name, seed) for name in names for seed in (20, 21)}) == 2 * len(names)
    given, sampled = chain(DFT, "hinted-style-given", 20), chain(DAPO, "hinted-style", 20)
    assert given.start.key == sampled.start.key
    assert given.data.sets == sampled.data.sets
    assert chain(DAPO, "hinted", 20).start.key != given.start.key
    begun = given.prepared["hinted-style-start"].resolved.run
    assert (begun.model, begun.data) == (UNTRAINED, "nano-hinted-style-mixed-demonstrations")


@pytest.mark.parametrize(
    ("last", "first", "kind"),
    [
        ("sdft-3", "sdft-1", "experts"),
        ("sft-3", "sft-1", "experts"),
        ("sft-3-own-style", "", "own"),
    ],
)
def test_each_new_skill_is_learnt_by_the_model_that_has_learnt_the_one_before(last, first, kind):
    def trainings(seed):
        """Return the chain of the arm and those of its preparations, the last training first."""
        chains = [Chain(resolve(SDFT, arm=last), seed)]
        while (model := chains[-1].resolved.run.model) != UNTRAINED:
            chains.append(chains[-1].prepared[model.removeprefix("prepared:")])
            assert chains[-2].start.chosen.trained.key == chains[-1].train.key
        return chains

    skills = [f"nano-hinted-style{ending}-{kind}" for ending in ("-3", "-2", "")]
    runs = trainings(20)
    assert [run.resolved.run.data for run in runs] == [
        *skills,
        "nano-hinted-styles-mixed-demonstrations",
    ]
    assert not {run.train.key for run in runs} & {run.train.key for run in trainings(21)}
    assert not first or Chain(resolve(SDFT, arm=first), 20).train.key == runs[2].train.key


def test_a_student_of_two_tokenizers_has_the_teacher_of_the_world_chain():
    def training(regime, name):
        [_, _, train] = chain(DFT, regime, 20, model=f"prepared:{name}").preparations
        return train

    student, teacher = (training("tokens", f"tokens-{role}") for role in ("start", "teacher"))
    assert teacher.key == training("chain", "chain-teacher").key
    assert student.key != training("chain", "chain-start").key
    sizes = [len(load_tokenizer(x.resolved.run.model)) for x in (student, teacher)]
    assert sizes == [98, 68]


def test_regimes_belong_to_worlds_and_nano_worlds_have_seeds_and_looks_of_their_own():
    assert world_of_regime(None) is world_of_regime("off8") is POCKET
    assert world_of_regime("length-tight").name == "length"
    seeds = {name: find_world(name).seeds for name in NANO}
    assert seeds.pop("erring") == tuple(range(40, 56))
    assert {*seeds.values()} == {tuple(range(20, 36))}
    assert all(WORLDS[name].looks[-1].seeds == 16 for name in NANO)
    assert POCKET.looks[-1].seeds == len(POCKET.seeds)
    assert all(world.trial_seed not in world.seeds for world in WORLDS.values())
    with pytest.raises(UnknownName, match="no regime 'length-tigth': did you mean length-tight"):
        world_of_regime("length-tigth")


def test_the_effective_settings_of_a_pocket_run_do_not_name_what_it_does_not_use():
    settings = effective(resolve(DAPO))["settings"]
    assert not {"heldout_temperature", "heldout_target", "eval_temperature"} & {*settings}
