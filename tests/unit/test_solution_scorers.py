"""Models that score solutions: what their scores are of, and which models are refused."""

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from core.data.conversations import Row
from core.families.prm import ProcessRewardModels
from core.families.reward import RewardModels
from core.models.load import load_policy
from core.models.nano import untrained_tokenizer
from core.models.scorers import REWARD_HEAD, STEP_HEAD, load_drawn_scorer
from core.scoring.reward_quantities import pair_rewards
from core.scoring.solutions import Solved, finite, whole_scores
from core.settings.resolve import resolve
from core.stages.answering import Answering
from core.stages.chain import Chain
from core.stages.loading import Loading
from core.stages.pair_quantities import SolutionQuantities
from core.stages.start import Chosen, Start
from eval.errors import BadValue, DamagedFile
from eval.nano.running_sums import running_sums
from eval.samples.evaluation import Decoding
from papers.reward_centering import PAPER

QUESTIONS = ("31415929=", "00000001=")
ANSWERS = ("34894354", "9", "", "00000001")
ROWS: list[Row] = [{"prompt": [{"role": "user", "content": question}]} for question in QUESTIONS]
SOLUTIONS = [
    Solved(place // 2, {"completion": text, "labels": [True] * len(text), "label": True}, 0)
    for place, text in enumerate(ANSWERS)
]


def saved(folder, head, name="nano-1", change=None):
    """Save a model with random weights, and with a head if one is given; return it as a stage."""
    model = load_drawn_scorer(name, head, 0) if head else load_policy(name)
    if change:
        change(model)
    model.save_pretrained(folder)
    untrained_tokenizer(name).save_pretrained(folder)
    return Answering(Start(Chosen(str(folder))), Loading(device="cpu"), 1)


def scored(tmp_path, scorer, family=RewardModels):
    policy, run = saved(tmp_path / "policy", None), saved(tmp_path / "run", REWARD_HEAD)
    stage = SolutionQuantities(
        answering=run,
        begun=policy,
        data=None,
        rows=2,
        quantities=(),
        decoding=Decoding(),
        family=family(),
        config=None,
        scorers=(scorer,),
    )
    return stage.scored(ROWS, SOLUTIONS, scorer)


def test_a_reward_model_gives_each_step_the_reward_that_its_training_reads():
    model, tokenizer = load_drawn_scorer("nano-1", REWARD_HEAD, 0), untrained_tokenizer("nano")
    scores = whole_scores(model, tokenizer, ROWS, SOLUTIONS)
    assert [len(of_steps) for of_steps in scores] == [8, 1, 1, 8]
    pairs = [
        {
            **row,
            "chosen": [{"role": "assistant", "content": one}],
            "rejected": [{"role": "assistant", "content": other}],
        }
        for row, one, other in zip(ROWS, ANSWERS[::2], ANSWERS[1::2], strict=True)
    ]
    rewards = pair_rewards(model, tokenizer, pairs).T.flatten()
    assert torch.allclose(torch.stack([of_steps[-1] for of_steps in scores]), rewards, atol=1e-6)
    assert len(rewards.unique()) == 4


def test_a_score_is_stored_for_each_solution(tmp_path):
    scorer = saved(tmp_path / "scorer", REWARD_HEAD)
    columns = scored(tmp_path, scorer)
    model = scorer.scorer(REWARD_HEAD, None)
    expected = [x[-1].item() for x in whole_scores(model, scorer.tokenizer, ROWS, SOLUTIONS)]
    assert columns["trained_score"] == pytest.approx(expected)
    assert columns["start_score"] == [1, 1, 0, 1]
    assert running_sums(QUESTIONS[0]) == ANSWERS[0]


def test_a_model_without_a_trained_head_is_refused(tmp_path):
    with pytest.raises(BadValue, match=r"its files lack score.weight: train it first"):
        scored(tmp_path, saved(tmp_path / "scorer", None))


def test_a_model_with_another_number_of_scores_is_refused(tmp_path):
    head = STEP_HEAD._replace(loader=AutoModelForSequenceClassification)
    with pytest.raises(DamagedFile, match="scorer: unreadable"):
        scored(tmp_path, saved(tmp_path / "scorer", head))


def test_a_model_with_another_tokenizer_is_refused(tmp_path):
    with pytest.raises(BadValue, match=r"has another tokenizer than .*policy, whose solutions"):
        scored(tmp_path, saved(tmp_path / "scorer", REWARD_HEAD, "nano-pairs-1"))


def test_scores_that_are_not_finite_are_refused(tmp_path):
    def spoil(model):
        with torch.no_grad():
            model.score.weight[0, 0] = torch.nan

    with pytest.raises(BadValue, match=r"scorer scores solution 0 with \[nan.*expected finite"):
        scored(tmp_path, saved(tmp_path / "scorer", REWARD_HEAD, change=spoil))
    with pytest.raises(BadValue, match="model scores solution 1 with"):
        finite([torch.ones(2), torch.tensor([1.0, torch.inf])], "model")


def test_models_of_steps_take_no_scorers():
    assert "scorers" in ProcessRewardModels.unused
    assert "scorers" not in RewardModels.unused


def test_scorers_learn_from_the_same_pairs_and_begin_with_weights_of_their_own():
    chain = Chain(resolve(PAPER, arm="rated"), 7)
    members = [chain.prepared[name] for name in sorted(chain.prepared) if "rated" in name]
    assert [member.seed for member in members] == [7] * 4
    assert {member.data.key for member in members} == {chain.data.key}
    starts = [one.prepared[one.resolved.run.model.removeprefix("prepared:")] for one in members]
    seeds = [start.seed for start in (chain.prepared["digits-start"], *starts)]
    assert seeds == [7, 1_000_007, 2_000_007, 3_000_007, 4_000_007]
    assert len({one.start.key for one in (chain, *members)}) == 5


def test_scorers_change_what_is_measured_and_not_the_training():
    together, alone = (
        Chain(resolve(PAPER, arm="rated", arguments=arguments), 7)
        for arguments in ((), ("scorers=()",))
    )
    assert together.train.key == alone.train.key
    (measured,), (measured_alone,) = (
        [pair[1] for pair in chain.quantity_pairs if isinstance(pair[1], SolutionQuantities)]
        for chain in (together, alone)
    )
    assert len(measured.scorers) == 4
    assert not measured_alone.scorers
    assert measured.inputs == {
        **measured_alone.inputs,
        "scorers": [scorer.policy.key for scorer in measured.scorers],
    }
