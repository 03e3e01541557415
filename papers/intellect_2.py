"""INTELLECT-2 bounds the ratio of tokens of wrong answers too, where PPO's loss has no bound.

Where the sources disagree, and what is not the paper's here:

- The report's own text was not at hand: settings are those that TRL's paper index cites from its
  section 4.1, the rest and all numbers are from notes on it.
- Its reward also falls with the distance between the length of thinking and a target in the prompt,
  with a weight that is not known: it is left out.
- Rollouts are two steps old, and prompts are chosen so that groups have a spread. At paper scale
  the settings say both; the arms take them one by one, the regime saying how often is updated.
- A cap helps only above 1 + epsilon; TRL says so and does not check it.
- Spikes are told in the world `many` by the norms of all updates at a rate of 1e-3, the choice of
  prompts in the world `choice` with groups of 4, half of which are without signal.
"""

from core.claims import Claim, late, law, score, whole
from core.paper import Paper, because, cite, in_regime, printed
from core.rewards import Accuracy

TOKENS = "core.laws.tokens"
NOTE = "note on the report"
SOLVED = score("nano-choice", temperature=1.0)
FILTER = {
    "family": "difficulty-filter",
    "num_generations": 8,
    "rate_above": 1 / 8,
    "rate_at_most": 1 / 2,
}
SMALL_GROUPS = {"num_generations": 4, "max_steps": 80}  # of 16 answers most have a signal
LARGE_STEPS = {"learning_rate": 1e-3, "loss_type": "grpo", "logging_steps": 1}  # spikes count

PAPER = Paper(
    slug="intellect-2",
    title="INTELLECT-2: A Reasoning Model Trained Through Globally Decentralized Reinforcement "
    "Learning",
    arxiv="2505.07291",
    family="grpo",
    config=(
        cite("s4.1", delta=4.0, epsilon=0.2, beta=0.001, num_generations=16, learning_rate=3e-7),
        cite("notes on the objective", loss_type="grpo", scale_rewards="group"),
        cite("notes on the objective", use_bias_correction_kl=False),
        cite(f"{NOTE}, 256 prompts", per_device_train_batch_size=16, steps_per_generation=256),
        cite(f"{NOTE}, 8 updates", gradient_accumulation_steps=32),
        cite(f"{NOTE}, 0.05 to 0.1", max_grad_norm=0.1),
        cite(f"{NOTE}, of a context of 32K", max_completion_length=30_720),
        cite(f"{NOTE}, online filter", rollout_selection="filled", selection_reward="accuracy"),
        cite("unstated", temperature=1.0, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/QwQ-32B",
    data="intellect-2",
    benchmarks=("aime24", "aime25", "math500"),
    reported=printed(
        "main results",
        ("aime24", "aime25", "LiveCodeBench v5", "GPQA-Diamond", "IFEval"),
        "avg",
        {
            ("INTELLECT-2", "32B"): (78.8, 64.9, 67.8, 66.8, 81.5),
            ("QwQ", "32B"): (76.6, 64.8, 66.1, 66.3, 83.4),
        },
    ),
    arms={
        "delta": {},
        "no-delta": {"delta": None},
        "fresh": {
            "delta": None,
            "at": {
                "cpu": {"regime": "on"},
                "gpu": {"same_as": "no-delta"},
                "paper": {"same_as": "no-delta"},
            },
        },
        "two-steps-old": {"delta": None, "rollout_lag": 2, "at": {"cpu": {"regime": "on"}}},
        "filtered": {
            "delta": None,
            "data": "prepared:chosen",
            "at": {"cpu": {"regime": "on"}},
        },
        "delta-many": in_regime("many", **LARGE_STEPS, delta=4.0),
        "no-delta-many": in_regime("many", **LARGE_STEPS),
        "filtered-groups-of-4": in_regime("choice", **SMALL_GROUPS, data="prepared:chosen-choice"),
        "groups-of-4": in_regime("choice", **SMALL_GROUPS),
    },
    preparations={
        "chosen": {  # the paper's filter, by a small model
            **FILTER,
            "at": {"cpu": {"data": "pocket", "num_prompts": 4000}},
        },
        "chosen-choice": {
            **FILTER,
            "per_seed": True,
            "at": {"cpu": {"regime": "choice", "num_prompts": 2000}},
        },
    },
    trl_index={
        "delta": 4.0,
        "epsilon": 0.2,
        "beta": 0.001,
        "num_generations": 16,
        "learning_rate": 3e-7,
    },
    trl_reasons=(
        because(
            "The entry leaves TRL's default, a mean over all tokens.",
            "loss_type",
        ),
        because("The entry is updated once with each rollout, where the cap acts on nothing."),
    ),
    profiles={
        "cpu": {
            "regime": "hot8",
            "loss_type": "grpo",
            "beta": 0.0,
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {"gradient_accumulation_steps": 1},  # several updates of a rollout here too
    },
    claims=(
        Claim(
            "bounded-loss",
            "The loss of a token of a wrong answer is bounded by the cap, and by nothing without.",
            law(f"{TOKENS}:largest_loss", -1.0, delta=4.0) < law(f"{TOKENS}:largest_loss", -1.0),
        ),
        Claim(
            "zero-gradient-beyond-delta",
            "A token of a wrong answer has no gradient at a ratio above the cap.",
            law(f"{TOKENS}:gradient_sizes", -1.0, 4.01, 5.0, 100.0, delta=4.0) == 0.0,
        ),
        Claim(
            "unchanged-inside",
            "Below the cap, and in right answers at any ratio, the loss is as without it.",
            law(f"{TOKENS}:change_by_cap", 4.0) == 0.0,
        ),
        Claim(
            "fewer-gradient-spikes",
            "With many updates at a high rate the norm of the gradient is smaller with it on "
            "average, to which its spikes add most.",
            whole("grad_norm").of("delta-many") < whole("grad_norm").of("no-delta-many"),
            mechanism="clipping",
            acts=whole("ratio/token_log_std").of("no-delta-many") >= 0.1,
        ),
        Claim(
            "staleness-tolerated",
            "Rollouts that are two steps old end at the reward of fresh ones.",
            late("reward").of("two-steps-old").about(late("reward").of("fresh"), within=0.05),
            mechanism="reuse of rollouts",
        ),
        Claim(
            "difficulty-filter-helps",
            "Trained on prompts that are neither too easy nor too hard at the start, the policy is "
            "right more often on all prompts.",
            SOLVED.of("filtered-groups-of-4") > SOLVED.of("groups-of-4"),
            mechanism="data",
            acts=whole("frac_reward_zero_std").of("groups-of-4") >= 0.3,
        ),
    ),
)
