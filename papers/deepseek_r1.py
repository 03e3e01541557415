"""DeepSeek-R1: rules alone teach a base model to reason; a chain of four stages makes it readable.

Where the sources disagree, and what is not the paper's here:

- The settings are those of R1-Zero, of which several are from the version in Nature. Version 1
  prints 71.0 for it on AIME 2024, the later one 77.9.
- A clip of 10 leaves a ratio unbounded below, as 1 - 10 is negative, and above by 11. It is printed
  for the first RL stage of R1; R1-Zero's was not seen.
- A rollout is 512 questions times 16 in sixteen updates; the length limit is 65,536 from step 8.2k
  on. The ratio is written for whole answers; as in DeepSeekMath it is taken of tokens.
- Prompts and answers were not released, nor the cold start's. The arm `r1` is the chain: a cold
  start by SFT, RL with a reward for one language, SFT of the base on what RL answers right, RL
  again at temperature 0.7. The 200,000 general samples and the reward models for helpfulness and
  safety of its last 400 steps are left out.
- TRL's entry has a learning rate of 4e-5, after Open-R1; the paper's is 3e-6.
- At cpu the base is `pocket-base`, which ends every answer in a box before any training and never
  leaves the language of the question: of 192 sampled answers three quarters of a percent did. So
  format and language have nothing to learn there.
- RL lowers the accuracy of that base at the scale's learning rate of 2e-4, at which the published
  runs were made: seed 0 goes from 28.8 % to 22.6 %, and at 5e-5 to 32.1 %. An arm that is compared
  with its start has its rate from trials now, which its next runs will use.
- Distilled is the base after SFT on right answers of the larger `pocket-teacher`, as many as the RL
  sampled. Neither the prompts nor the number of its answers are the paper's 800,000.
"""

from core.claims import START, Claim, Expected, Untestable, early, late, law, score, whole
from core.paper import Column, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy, Format, LanguageConsistency, ThinkFormat

LENGTH, SILENT = "completions/mean_length", "core.laws.clipping:silent_at"
# In the pocket world all answers have nearly one length, and the base ends below its start.
LEARNS = late("reward", 0.75).of("zero-length") - early("reward", 0.25).of("zero-length") >= 0.1
SPANS_TOKENS = late(LENGTH, 0).of("ppo-lambda-0.95-length") >= 8
README = "README of the repository"
FORMED = Untestable(
    "no room in the pocket world: its base model ends every answer in a box before training"
)
ONE_LANGUAGE = Untestable(
    "no room in the pocket world: its models keep to the language of the question before training"
)
OF_PPO = {
    "family": "ppo",
    "at": {"cpu": {"regime": None, "model": "pocket-instruct", "rewards": (Accuracy(),)}},
}
BASE = {"model": "pocket-base"}
SIXTEEN = {"cpu": {"regime": "off16", "rewards": (Accuracy(),)}}
AS_ZERO = {"gpu": {"same_as": "zero"}, "paper": {"same_as": "zero"}}
COLUMNS = ("aime24", "AIME24 cons@64", "math500", "GPQA-Diamond", "LiveCodeBench")


def distilled_row(*cells: float) -> tuple[float | None, ...]:
    """Return a table row of the first five columns and, as the sixth value, of the rating."""
    return (*cells[:5], *[None] * 8, cells[5])


PAPER = Paper(
    slug="deepseek-r1",
    title="DeepSeek-R1: Incentivizing Reasoning Capability in LLMs via Reinforcement Learning",
    arxiv="2501.12948",
    family="grpo",
    config=(
        cite("paper, GRPO objective", loss_type="grpo", scale_rewards="group"),
        cite("paper, GRPO objective", use_bias_correction_kl=False),
        cite("paper, R1-Zero training details", learning_rate=3e-6, beta=0.001, temperature=1.0),
        cite("paper, R1's first RL stage", epsilon=10.0),
        cite("paper, before step 8.2k", max_completion_length=32_768),
        cite("paper: 8,192 answers in 16 updates", num_generations=16, num_iterations=1),
        cite("paper: 8,192 answers in 16 updates", per_device_train_batch_size=16),
        cite("paper: 8,192 answers in 16 updates", gradient_accumulation_steps=32),
        cite("paper: 8,192 answers in 16 updates", steps_per_generation=512),
        cite("paper, R1-Zero", max_steps=10_400),
        cite("paper: the latest policy every 400 steps", sync_ref_model=True),
        cite("paper: the latest policy every 400 steps", ref_model_sync_steps=400),
        cite("paper: the latest policy every 400 steps", ref_model_mixup_alpha=1.0),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(), ThinkFormat()),
    model="deepseek-ai/DeepSeek-V3-Base",
    data="deepseek-r1-rl",
    benchmarks=("math500", "aime24"),
    reported=(
        *printed(
            README,
            (
                *(Column(benchmark=name) for name in (*COLUMNS, "MMLU", "CNMO 2024")),
                Column(benchmark="SWE-bench Verified", metric="resolved"),
                Column(benchmark="AlpacaEval 2.0", metric="win rate at equal length"),
                Column(benchmark="ArenaHard", metric="judged by GPT-4-1106"),
                Column(benchmark="IF-Eval", metric="prompts followed strictly"),
                Column(benchmark="SimpleQA", metric="correct"),
                Column(benchmark="Codeforces", title="percentile", metric="percentile", unit=""),
                Column(benchmark="Codeforces", title="rating", metric="rating", unit=""),
            ),
            "pass@1",
            {
                ("DeepSeek-R1", "671B"): (
                    *(79.8, None, 97.3, 71.5, 65.9, 90.8, 78.8),
                    *(49.2, 87.6, 92.3, 83.3, 30.1, 96.3, 2029),
                ),
                ("R1-Distill-Qwen", "1.5B"): distilled_row(28.9, 52.7, 83.9, 33.8, 16.9, 954),
                ("R1-Distill-Qwen", "7B"): distilled_row(55.5, 83.3, 92.8, 49.1, 37.6, 1189),
                ("R1-Distill-Qwen", "14B"): distilled_row(69.7, 80.0, 93.9, 59.1, 53.1, 1481),
                ("R1-Distill-Qwen", "32B"): distilled_row(72.6, 83.3, 94.3, 62.1, 57.2, 1691),
                ("R1-Distill-Llama", "8B"): distilled_row(50.4, 80.0, 89.1, 49.0, 39.6, 1205),
                ("R1-Distill-Llama", "70B"): distilled_row(70.0, 86.7, 94.5, 65.2, 57.5, 1633),
            },
        ),
        *printed(
            "secondary notes",
            COLUMNS,
            "pass@1",
            {
                "R1-Zero before RL": (15.6, None, None, None, None),
                "R1-Zero": (77.9, 86.7, 95.9, 73.3, 50.0),
            },
        ),
        *printed("DAPO, table 1", ("aime24",), "avg@32", {("R1-Zero-Qwen", "32B"): (47.0,)}),
    ),
    preparations={
        "cold-start": {
            "family": "sft",
            "data": "deepseek-r1-sft",
            "at": {"cpu": {**BASE, "data": "pocket-worked"}},
        },
        "reasoning": {
            "model": "prepared:cold-start",
            "rewards": (Accuracy(), LanguageConsistency()),
            "at": {
                "cpu": {"model": "prepared:cold-start"},
                "gpu": {"model": "prepared:cold-start"},
            },
        },
        "accepted": {
            "family": "rejection-sampling",
            "model": "prepared:reasoning",
            "rewards": (Accuracy(),),
            "at": {"cpu": {"num_prompts": 1400}},
        },
        "second-sft": {
            "family": "sft",
            "data": "prepared:accepted",
            "at": {"cpu": BASE},
        },
        "answers": {
            "family": "rejection-sampling",
            "model": "deepseek-ai/DeepSeek-R1",
            "rewards": (Accuracy(),),
            "at": {"cpu": {"model": "pocket-teacher", "num_prompts": 1400}},
        },
    },
    arms={
        "zero": {"at": {"cpu": {"rate_factors": (1 / 3, 1.0, 3.0)}}},
        "r1": {
            "model": "prepared:second-sft",
            "rewards": (Accuracy(), LanguageConsistency()),
            "temperature": 0.7,
            "at": {"paper": {"max_steps": 1700}},
        },
        "distilled": {"family": "sft", "data": "prepared:answers"},
        "ppo-lambda-1": {**OF_PPO, "lam": 1.0},
        "ppo-lambda-0.95": OF_PPO,
        "clip-10": {"at": {**SIXTEEN, **AS_ZERO}},
        "clip-0.2": {"epsilon": 0.2, "at": SIXTEEN},
        "zero-length": in_regime("length"),
        "ppo-lambda-1-length": {"family": "ppo", **in_regime("length", lam=1.0)},
        "ppo-lambda-0.95-length": {"family": "ppo", **in_regime("length", lam=0.95)},
    },
    trl_reasons=(
        because("The entry's rate of 4e-5 is Open-R1's for a Qwen of 7B, and it sets no clip."),
    ),
    profiles={
        "cpu": {
            "benchmarks": ("math500",),
            "twins": {"math500": "pocket-math"},
            "regime": "base",
            "rewards": (Accuracy(), Format()),
            "loss_type": "grpo",
            "epsilon": 10.0,
            "beta": 0.001,
            "ref_model_sync_steps": 18,
        },
        "gpu": {
            "gradient_accumulation_steps": 1,
            "steps_per_generation": 16,
            "max_steps": 1600,
            "ref_model_sync_steps": 400,
        },
    },
    claims=(
        Claim(
            "rule-reward-only-rl-works",
            "RL of the base with rules for answer and form alone raises its accuracy.",
            score("math500").of("zero") > score("math500").of(START),
            mechanism="learning signal",
        ),
        Claim("format-learned-first", "The form is learned before the answers.", FORMED),
        Claim(
            "length-grows",
            "The answers grow longer in the course of RL.",
            late(LENGTH, 0.75).of("zero-length") > early(LENGTH, 0.25).of("zero-length"),
            mechanism="length",
            acts=LEARNS,
            expects=Expected(effect=7.9, spread=2.6),
        ),
        Claim(
            "language-consistency-raises-consistency",
            "A reward for it keeps the thoughts in the language of the question.",
            ONE_LANGUAGE,
        ),
        Claim(
            "language-consistency-costs-accuracy",
            "The same reward does not raise the accuracy.",
            ONE_LANGUAGE,
        ),
        Claim(
            "small-clip-truncates-gradient",
            "Of tokens that have moved a clip of 0.2 stops more than one of 10, on either side.",
            law(SILENT, 0.2) > law(SILENT, 10.0),
        ),
        Claim(
            "ppo-lambda",
            "PPO is better with a lambda of 1 than with 0.95.",
            whole("reward").of("ppo-lambda-1-length")
            > whole("reward").of("ppo-lambda-0.95-length"),
            mechanism="baselines",
            acts=SPANS_TOKENS,
            expects=Expected(effect=-0.07, spread=0.019),
        ),
        Claim(
            "distil-beats-small-rl",
            "SFT on a larger model's right answers ends above RL of the small model.",
            score("math500").of("distilled") > score("math500").of("zero"),
            mechanism="learning signal",
        ),
    ),
)
