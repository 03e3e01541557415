"""Beyond the 80/20 rule: of a chain of thought, only the most uncertain fifth of tokens is trained.

Where the sources disagree, and what is not the paper's here:

- The paper divides by the tokens that it keeps, TRL by all of them, which makes the gradient
  smaller by the share that is kept.
- The paper updates 16 times with each rollout of 512 prompts; the entry in TRL's paper index has
  one update per rollout, where no ratio leaves 1 and the clip never acts.
- The entry has no dynamic sampling, no punishment of overlong answers, and calls the run comparable
  with one on all tokens; the paper's gain grows with the model: 0.5, 3.0 and 4.1 points.
- The threshold is that of a micro-batch over all processes, as in TRL; entropies are those of the
  distribution that is sampled from, after the temperature.
- The small twin has no punishment of overlong answers: it compares which tokens are trained.
"""

from core.claims import START, Claim, Expected, Untestable, early, late, law, probability, score
from core.paper import Paper, because, cite, in_regime, printed
from core.paper.printed import Column
from core.rewards import Accuracy, SoftOverlong

L_MAX, L_CACHE = 20_480, 4_096  # s5.2
SOLVED, LENGTH = score("nano-choice", temperature=1.0), "completions/mean_length"
TOP, BOTTOM = (
    {"top_entropy_quantile": share, "top_entropy_tokens": end, "top_entropy_normalizer": "kept"}
    for share, end in ((0.2, "most"), (0.8, "least"))
)
# Which tokens are trained changes the entropy: by this many nats, beside training on all of them.
CHOSEN = late("entropy").of("top-20-choice") - late("entropy").of("all-choice") >= 0.02
LENGTHENS = late(LENGTH).of("all-length") - early(LENGTH, 0.25).of("all-length") >= 5
COLUMNS = (
    "aime24",
    "aime25",
    "amc23",
    "math500",
    "Minerva",
    "OlympiadBench",
    "Average",
    Column(benchmark="response length", metric="mean", unit="tokens"),
)
ALL, KEPT = "all tokens", "forking tokens"

PAPER = Paper(
    slug="beyond-80-20",
    title="Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective Reinforcement "
    "Learning for LLM Reasoning",
    arxiv="2506.01939",
    family="grpo",
    config=(
        cite("s5", top_entropy_quantile=0.2),
        cite("eq. 6", top_entropy_tokens="most", top_entropy_normalizer="kept"),
        cite("s5.2", loss_type="dapo", epsilon=0.2, epsilon_high=0.28, beta=0.0),
        cite("s5.2", learning_rate=1e-6, warmup_steps=0),
        cite("s5.2, 512 prompts", per_device_train_batch_size=16, steps_per_generation=512),
        cite("s5.2, 32 prompts an update", gradient_accumulation_steps=32),
        cite("s5.2", max_completion_length=L_MAX, mask_truncated_completions=True),
        cite("s5.2, as DAPO", rollout_selection="filled", selection_reward="accuracy"),
        cite("TRL's paper index, as DAPO", num_generations=16),
        cite("unstated", temperature=1.0, lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(right=1.0, wrong=-1.0), SoftOverlong(L_MAX, L_CACHE)),
    model="Qwen/Qwen3-8B-Base",
    data="dapo-math-17k",
    benchmarks=("aime24", "aime25", "amc23", "math500"),
    reported=(
        *printed(
            "table 2",
            COLUMNS,
            "avg@16",
            {
                (ALL, "32B"): (55.83, 45.63, 91.88, 94.36, 45.70, 66.16, 66.59, 5848.80),
                (KEPT, "32B"): (63.54, 56.67, 94.22, 94.88, 45.82, 69.02, 70.69, 7227.03),
                (ALL, "14B"): (45.21, 38.13, 89.53, 92.23, 42.16, 61.14, 61.40, None),
                (KEPT, "14B"): (50.42, 42.92, 91.56, 93.59, 43.20, 64.62, 64.39, None),
                (ALL, "8B"): (33.33, 25.42, 77.81, 89.24, 39.77, 56.67, 53.71, None),
                (KEPT, "8B"): (34.58, 26.25, 77.19, 89.70, 40.26, 57.43, 54.23, None),
            },
        ),
        *printed(
            "text",
            ["aime24"],
            "avg@16",
            {("forking tokens, answers of up to 29k tokens", "32B"): (68.1,)},
        ),
        *printed(
            "s3",
            ["token entropy"],
            "80th percentile",
            {"tokens of chains of thought": (0.672,)},
            unit="nats",
        ),
    ),
    arms={
        "top-20": {},
        "all-tokens": {"top_entropy_quantile": 1.0, "top_entropy_normalizer": "all"},
        "bottom-80": {"top_entropy_quantile": 0.8, "top_entropy_tokens": "least"},
        "top-20-choice": in_regime("choice", **TOP),
        "all-choice": in_regime("choice"),
        "bottom-80-choice": in_regime("choice", **BOTTOM),
        "top-20-length": in_regime("length", **TOP),
        "all-length": in_regime("length"),
    },
    trl_index={
        "loss_type": "dapo",
        "beta": 0.0,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "top_entropy_quantile": 0.2,
        "mask_truncated_completions": True,
        "num_generations": 16,
        "per_device_train_batch_size": 512,
    },
    trl_reasons=(
        because(
            "The entry updates once with each rollout, where no clip acts; the paper 16 times.",
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
            "steps_per_generation",
        ),
        because(
            "The paper divides by the kept tokens, TRL by all, so that its gradient is a fifth.",
            "top_entropy_normalizer",
        ),
        because("TRL draws no further prompts.", "rollout_selection", "selection_reward"),
    ),
    profiles={
        "cpu": {
            "regime": "off8",
            "loss_type": "dapo",
            "epsilon_high": 0.28,
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
        },
        "gpu": {"gradient_accumulation_steps": 1},  # several updates of a rollout here too
    },
    claims=(
        Claim(
            "entropy-is-skewed",
            "Of the starting model's entropy more than half lies on a fifth of the tokens.",
            probability("entropy/share_of_top_fifth").of(START) > 0.5,
            describes="a model that is sure of most tokens has its entropy on the others",
            mechanism="entropy",
        ),
        Claim(
            "top20-not-worse",
            "Training on the most uncertain fifth ends no less accurate than on all tokens.",
            SOLVED.of("top-20-choice") >= SOLVED.of("all-choice"),
            mechanism="entropy",
            acts=CHOSEN,
            expects=Expected(effect=-10.0, spread=1.3),
        ),
        Claim(
            "bottom80-worse",
            "Training on the other four fifths ends less accurate than on all tokens.",
            SOLVED.of("bottom-80-choice") < SOLVED.of("all-choice"),
            mechanism="entropy",
            acts=CHOSEN,
            expects=Expected(effect=-24.0, spread=2.3),
            healthy=("all-choice",),  # that training on the others fails is the claim
        ),
        Claim(
            "top20-keeps-entropy",
            "It leaves the policy with more entropy than training on the other four fifths.",
            late("entropy").of("top-20-choice") > late("entropy").of("bottom-80-choice"),
            mechanism="entropy",
            acts=CHOSEN,
            expects=Expected(effect=0.06, spread=0.11),
        ),
        Claim(
            "longer-responses",
            "It ends with longer answers than training on all tokens.",
            late(LENGTH).of("top-20-length") > late(LENGTH).of("all-length"),
            mechanism="entropy",
            acts=LENGTHENS,
        ),
        Claim(
            "pattern-preserved",
            "After training more than 86 % of the most uncertain fifth are where they were.",
            probability("entropy/overlap_of_top_fifth").of("all-tokens") > 0.86,
            mechanism="entropy",
        ),
        Claim(
            "trl-normaliser",
            "Divided by all tokens the gradient is that of equation 6 times the share kept.",
            law("core.laws.entropy:divisor_ratio").about(
                law("core.laws.entropy:kept_share"), within=1e-12
            ),
        ),
        Claim(
            "gain-grows-with-size",
            "The gain over training on all tokens grows with the model.",
            Untestable("it needs two models of one family that differ in size alone"),
        ),
    ),
)
