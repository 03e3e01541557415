"""Lite PPO: of all tricks the deviation of the batch and a loss over all tokens are enough.

Where the sources disagree, and what is not the paper's here:

- The results are curves; no number is printed. Which hard problems make the data of that name is
  not known.
- The batch's deviation bounds advantages only beside mixed groups: a 7-of-8 group among groups
  without a spread gets larger ones by it than by its own, 4.9 to 2.5 among three such groups.
- TRL's paper index sets steps_per_generation=8, which TRL counts in micro-batches of 4: a rollout
  of 32 completions, used once, where the paper's has 1,024 and is used in 8 updates.
- That entry calls loss_type 'dapo' a mean over the batch and not over what is accumulated, which
  is what 'bnpo' does.
- The arms stand for the paper's figures: `instruct` and `base` for aligned and base models, `short`
  and `long` for budgets of 8k and 20k tokens. DAPO with all its tricks has dynamic sampling, no
  loss of cut answers, and the punishment of overlong ones.
- The short budget, 40 tokens for the small twin, cut 51 % of the answers that it was trained on,
  the long one, 48, cut 11 %; where none is cut leaving cut ones out is no other training. In the
  nano world the budgets are 16 and 64 tokens.
"""

from core.claims import Claim, Expected, early, final, late, law, middle, score, whole
from core.paper import Paper, because, cite, in_regime
from core.rewards import Accuracy, SoftOverlong

ACCURACY, SAMPLED = final("held_out/accuracy"), score("nano-length", temperature=1.0)
SHORT_LIMIT = 16  # tokens
WRONG_LENGTH, CUT = "completions/wrong_mean_length", "completions/clipped_ratio"
LARGEST, RIGHTS = "core.laws.spreads:largest_advantage", (7, 4, 4, 4)
PLAIN = {"scale_rewards": "group"}
WIDER = PLAIN | {"epsilon_high": 0.28}
ALIGNED = {"model": "Qwen/Qwen3-4B"}
CONCENTRATED = early("reward", 0).of("group-std-long") >= 0.75  # as of prompts mostly solved
# In the pocket world all answers have nearly one length, and arms end below their start.
LENGTHENS = (
    middle(WRONG_LENGTH).of("grpo-length") - early(WRONG_LENGTH, 0.25).of("grpo-length") >= 5
)
LITE_IS_CUT = late(CUT, 0).of("lite-ppo-tight") >= 0.1
IS_CUT = late(CUT, 0).of("plain-tight") >= 0.1


def tight(**changes: object) -> dict[str, object]:
    """Return an arm of the nano world whose limit cuts more than a tenth of the answers."""
    return in_regime(
        "length-tight",
        max_completion_length=SHORT_LIMIT,
        eval_max_tokens=SHORT_LIMIT,
        **changes,
    )


OFF8 = {"at": {"cpu": {"regime": "off8", "model": "pocket-instruct"}}}
BASE8 = {"at": {"cpu": {"regime": "base8"}}}
SHORT = {"at": {"cpu": {"regime": "tight"}}}
LONG = {
    "max_completion_length": 20_480,
    "at": {"cpu": {"regime": "tight", "max_completion_length": 48}},
}
SOLVED = {"data": "simplerl-zoo-easy-5k"}
EASY = {"at": {"cpu": {"regime": "easy"}, "gpu": SOLVED, "paper": SOLVED}}
BASE_AGAIN = {"same_as": "base-clip-higher"}

PAPER = Paper(
    slug="lite-ppo",
    title="Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning",
    arxiv="2508.08221",
    family="grpo",
    config=(
        cite("Lite PPO", scale_rewards="batch", loss_type="dapo"),
        cite("setup", beta=0.0, epsilon=0.2, learning_rate=1e-6, num_iterations=1),
        cite("setup", temperature=0.99, top_p=0.99, top_k=100),
        cite("setup", num_generations=8, max_completion_length=8192),
        cite("TRL's paper index", per_device_train_batch_size=4, gradient_accumulation_steps=32),
        cite("setup, 1,024 completions", steps_per_generation=256),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen3-4B-Base",
    data="deepmath-easiest-5k",
    benchmarks=("math500", "amc23", "aime24", "aime25"),
    arms={
        "lite-ppo": {},
        "grpo": PLAIN | {"loss_type": "grpo"},
        "dapo": WIDER
        | {
            "rollout_selection": "filled",
            "selection_reward": "accuracy",
            "mask_truncated_completions": True,
            "rewards": (Accuracy(), SoftOverlong(8192, 2048)),
            "at": {"cpu": {"rewards": (Accuracy(), SoftOverlong(64, 16))}},
        },
        "easy-no-std": {"scale_rewards": "none"} | EASY,
        "easy-group-std": PLAIN | EASY,
        "instruct-clip-higher": WIDER | ALIGNED | OFF8,
        "instruct-symmetric": PLAIN | {"epsilon_high": 0.2} | ALIGNED | OFF8,
        "instruct-sequence": WIDER | {"loss_type": "grpo"} | ALIGNED | OFF8,
        "base-clip-higher": WIDER | BASE8,
        "base-symmetric": PLAIN | {"epsilon_high": 0.2} | BASE8,
        "base-sequence": WIDER | {"loss_type": "grpo"} | BASE8,
        "short": WIDER
        | {"at": {"cpu": {"regime": "tight"}, "gpu": BASE_AGAIN, "paper": BASE_AGAIN}},
        "short-filter": WIDER | {"mask_truncated_completions": True} | SHORT,
        "long": WIDER | LONG,
        "long-filter": WIDER | {"mask_truncated_completions": True} | LONG,
        "no-std-long": in_regime("length-long", scale_rewards="none"),
        "group-std-long": in_regime("length-long"),
        "lite-ppo-length": in_regime("length", scale_rewards="batch"),
        "grpo-length": in_regime("length", loss_type="grpo"),
        "lite-ppo-tight": tight(scale_rewards="batch"),
        "dapo-tight": tight(
            epsilon_high=0.28,
            rollout_selection="filled",
            selection_reward="accuracy",
            mask_truncated_completions=True,
            rewards=(Accuracy(), SoftOverlong(SHORT_LIMIT, SHORT_LIMIT // 4)),
        ),
        "plain-tight": tight(),
        "filter-tight": tight(mask_truncated_completions=True),
        "plain-length": in_regime("length"),
        "filter-length": in_regime("length", mask_truncated_completions=True),
    },
    trl_index={
        "scale_rewards": "batch",
        "loss_type": "dapo",
        "beta": 0.0,
        "temperature": 0.99,
        "top_p": 0.99,
        "top_k": 100,
        "num_generations": 8,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 32,
        "steps_per_generation": 8,
    },
    trl_reasons=(
        because(
            "TRL counts it in micro-batches: 8 of them are a rollout of 32 completions that is "
            "used once, where the paper's 1,024 are 8 updates.",
            "steps_per_generation",
        ),
        because("The entry says that 'dapo' leaves accumulated batches apart, as 'bnpo' does."),
    ),
    profiles={
        "cpu": {
            "regime": "base",
            "loss_type": "dapo",
            "scale_rewards": "batch",
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {"gradient_accumulation_steps": 1},  # several updates of a rollout here too
    },
    claims=(
        Claim(
            "batch-std-bounded",
            "Beside mixed groups the advantages of a nearly constant one are smaller by the "
            "deviation of the batch than by its own.",
            law(LARGEST, "batch", RIGHTS) < law(LARGEST, "group", RIGHTS),
        ),
        Claim(
            "std-removal-helps-when-concentrated",
            "On problems that are mostly solved, training ends more accurate without a deviation.",
            SAMPLED.of("no-std-long") > SAMPLED.of("group-std-long"),
            mechanism="baselines",
            acts=CONCENTRATED,
        ),
        Claim(
            "lite-ppo-beats-grpo",
            "Lite PPO learns faster than GRPO.",
            whole("reward").of("lite-ppo-length") > whole("reward").of("grpo-length"),
            mechanism="length",
            acts=LENGTHENS,
        ),
        Claim(
            "lite-ppo-beats-dapo",
            "It ends no less accurate than DAPO with all its tricks.",
            SAMPLED.of("lite-ppo-tight") >= SAMPLED.of("dapo-tight"),
            mechanism="length",
            acts=LITE_IS_CUT,
        ),
        Claim(
            "clip-higher-only-aligned",
            "A wider upper clip gains more for an aligned model than for a base model.",
            ACCURACY.of("instruct-clip-higher") - ACCURACY.of("instruct-symmetric")
            > ACCURACY.of("base-clip-higher") - ACCURACY.of("base-symmetric"),
            mechanism="clipping",
        ),
        Claim(
            "token-level-base",
            "A mean over tokens gains more over one over completions for a base model.",
            ACCURACY.of("base-clip-higher") - ACCURACY.of("base-sequence")
            > ACCURACY.of("instruct-clip-higher") - ACCURACY.of("instruct-sequence"),
            mechanism="length",
        ),
        Claim(
            "overlong-filter-short-budget",
            "Leaving cut answers out gains more where many are cut than where few are.",
            SAMPLED.of("filter-tight") - SAMPLED.of("plain-tight")
            > SAMPLED.of("filter-length") - SAMPLED.of("plain-length"),
            mechanism="length",
            acts=IS_CUT,
            expects=Expected(effect=-8.0, spread=4.0),
        ),
    ),
)
