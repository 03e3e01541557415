"""A small penalty keeps the rewards of a pair centred, so that reward models have one scale.

Where the sources disagree, and what is not the paper's here:

- The coefficient 0.01 and the place of the penalty were read in TRL's paper index alone, which puts
  it inside the expectation that is negated as a whole: added to the loss it is positive.
- No table of the paper was at hand; the models are T5 of up to 3B, and the data sets are named from
  secondary descriptions.
- The heads are those that transformers draws. They have no bias: an offset of the rewards comes
  from the hidden states.
- The world's reward models have 300 updates here, not 150, after which the one without the penalty
  ordered 76 % of the clear pairs of seed 100, and 95 % after 300. The accuracy jumps at another
  step in each training: on the seeds 100 and 101 it differs by up to 10 points between the arms.
- That the penalty brings the rewards nearer to 0 could hardly come out otherwise, as it is their
  square: the verdicts on their mean and on their agreement tell how much of it 0.01 does.
- Every seed has a start, pairs and a head of its own. The text whose reward is compared over seeds
  is the same for all of them.
- An ensemble here is five reward models. They learn, without the penalty, from the same pairs of
  one policy's solutions, of which the one with the larger share of right steps is chosen, and begin
  with policies of different random weights. Rewards are standardised before their mean, which a
  scale or an offset of a model does not change.
- Overrated is the standardised reward less the standardised share of right steps, of the solution
  that the reward picks. It grows with the number of solutions unless the order of rewards is that
  of the gold, so the claim on its growth takes off what rewards would have by chance, in an order
  that knows nothing of the gold. What is left grows only if the picked solutions themselves are
  worse among 64 than among 4. On seed 100, with 0.676 of the pairs in order, an ensemble is
  overrated by 0.29 among 4 and 1.78 among 64, of which 0.66 and 1.36 by chance; each of its models
  alone, with 0.585 to 0.651 in order, by 1.82 to 2.70 among 64.
- The paper compares 256 solutions with 4, here 64 are the most.
"""

from core.claims import Claim, Expected, deviation, probability
from core.paper import Paper, cite, in_regime

MEAN, ONE = probability("rewards/mean"), probability("rewards/one_completion")
ORDER, CLEAR = probability("pairs/accuracy"), probability("pairs_clear/accuracy")
HEALTHY = (CLEAR.of("plain") >= 0.75, CLEAR.of("centred") >= 0.75)
ENDINGS = ("/ensemble", "/alone")
OFFSET = abs(MEAN.of("plain")) >= 0.3
ORDERED, ORDERED_ALONE = (
    probability(f"solutions/ordered_pairs{ending}").of("rated") for ending in ENDINGS
)
OVERRATED, OVERRATED_ALONE = (
    probability(f"solutions/overrated_of_64{ending}").of("rated") for ending in ENDINGS
)
BEYOND_CHANCE, FEW_BEYOND_CHANCE = (
    probability(f"solutions/overrated_of_{n}/ensemble").of("rated")
    - probability(f"solutions/overrated_by_chance_of_{n}/ensemble").of("rated")
    for n in (64, 4)
)

PAPER = Paper(
    slug="reward-centering",
    title=(
        "Helping or Herding? Reward Model Ensembles Mitigate but do not Eliminate Reward Hacking"
    ),
    arxiv="2312.09244",
    family="reward",
    config=(
        cite("TRL's paper index", center_rewards_coefficient=0.01),
        cite("unstated", learning_rate=1e-4, lr_scheduler_type="constant"),
        cite("unstated", num_train_epochs=1.0, max_length=1024),
    ),
    model="google-t5/t5-large",
    data="helpfulness-factuality-preferences",
    trl_index={"center_rewards_coefficient": 0.01},
    arms={
        "centred": {"at": {"cpu": {"center_rewards_coefficient": 0.01}}},
        "plain": {"center_rewards_coefficient": None},
        "rated": in_regime(
            "digits-rated", scorers=tuple(f"prepared:digits-rated-{n}" for n in (2, 3, 4, 5))
        ),
    },
    profiles={"cpu": {"regime": "digits", "max_steps": 300}},
    claims=(
        Claim(
            "centred-mean",
            "With the penalty the mean of all rewards is nearer to 0.",
            abs(MEAN.of("centred")) < abs(MEAN.of("plain")),
            mechanism="preferences",
            acts=(*HEALTHY, OFFSET),
            expects=Expected(effect=-2.0, spread=0.8),
        ),
        Claim(
            "centred-accuracy",
            "The share of pairs in order hardly changes.",
            ORDER.of("centred").about(ORDER.of("plain"), within=0.03),
            mechanism="preferences",
            acts=(*HEALTHY, OFFSET),
            expects=Expected(effect=0.04, spread=0.06),
        ),
        Claim(
            "centred-agreement",
            "The reward of one text varies less over reward models of different seeds.",
            deviation(ONE.of("centred")) < deviation(ONE.of("plain")),
            mechanism="preferences",
            acts=(*HEALTHY, OFFSET),
            expects=Expected(effect=-0.9, spread=1.0),
        ),
        Claim(
            "ensemble-bon",
            "The best of many answers by the mean of several reward models is overrated less than "
            "by one of them.",
            OVERRATED < OVERRATED_ALONE,
            mechanism="preferences",
            acts=(ORDERED >= 0.6, ORDERED_ALONE >= 0.6),
            healthy=(),
            expects=Expected(effect=-0.43, spread=0.25),
        ),
        Claim(
            "ensemble-not-cure",
            "The best of many answers by the mean of several reward models is still overrated the "
            "more, the more answers there are, beyond what the order of their scores makes.",
            BEYOND_CHANCE > FEW_BEYOND_CHANCE,
            mechanism="preferences",
            acts=ORDERED >= 0.6,
            healthy=(),
            expects=Expected(effect=0.79, spread=0.25),
        ),
    ),
)
