"""SSD samples solutions hot and truncated, verifies none of them, and fine-tunes on them.

Where the sources disagree, and what is not the paper's here:

- The frozen starting model samples, as in the paper; TRL's trainer samples from the model in
  training, which is the arm `moving-sampler`.
- TRL's script has temperature 1.6, the repository 1.5, both with top-p 0.8. TRL's paper index has
  0.6 and 0.95, the settings of an evaluation: a temperature below 1 flattens no head.
- The repository drops the shortest tenth of the answers, TRL the empty ones and short lines. The
  answers of the pocket world are all short, and none of them is dropped at `cpu`.
- The paper does not filter. In the pocket world, where samples can be graded, all of them are
  compared with the right ones, as data of two trainings of equal length.
- LiveCodeBench is no benchmark here; gains on easy and hard problems were read from a summary.
"""

from core.claims import Claim, Untestable, law, least, score
from core.paper import Paper, because, cite, printed
from core.rewards import Accuracy

LAWS = "core.laws.self_distillation"
NO_GRAMMAR = Untestable(
    "needs a world of positions with one valid token and positions with several, and the mass of "
    "tokens outside the start's nucleus there"
)
SOLVED = score("gsm8k")
NUCLEUS = Untestable("no quantity of a run is the mass or the entropy of the start's nucleus")


def sampled(prompts: int, least_reward: float) -> dict[str, object]:
    """Return a preparation of the start's answers with a reward of at least `least_reward`.

    Its temperature and nucleus are those of the paper. There is no limit of 20 tokens.
    """
    return {
        "family": "rejection-sampling",
        "rewards": (Accuracy(),),
        "per_seed": True,
        "num_generations": 1,
        "temperature": 1.6,
        "top_p": 0.8,
        "least_reward": least_reward,
        "at": {"cpu": {"num_prompts": prompts}},
    }


PAPER = Paper(
    slug="ssd",
    title="Embarrassingly Simple Self-Distillation Improves Code Generation",
    arxiv="2604.01193",
    family="ssd",
    config=(
        cite("paper", rollout_policy="reference"),
        cite("TRL's script", temperature=1.6, top_k=20, top_p=0.8, lr_scheduler_type="cosine"),
        cite("TRL's script", gradient_accumulation_steps=32, num_train_epochs=1.0),
        cite("repository", max_completion_length=65_536),
        cite("TRL's paper index", learning_rate=5e-6),
        cite("unstated", per_device_train_batch_size=1, filter_empty=True),
    ),
    model="Qwen/Qwen3-4B-Instruct-2507",
    data="rstar-coder-seed",
    benchmarks=("gsm8k",),
    reported=(
        *printed(
            "abstract",
            ("LiveCodeBench v6",),
            "pass@1",
            {("Qwen3-30B-Instruct", "30B"): (42.4,), ("SSD", "30B"): (55.3,)},
        ),
        *printed(
            "paper, as summarised",
            ("LiveCodeBench v6 easy", "LiveCodeBench v6 hard"),
            "gain in pass@1",
            {("SSD", "30B"): (6.5, 15.3)},
        ),
    ),
    trl_index={
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
        "max_completion_length": 65_536,
        "learning_rate": 5e-6,
    },
    trl_reasons=(
        because("A temperature below 1 sharpens, and TRL's own script has 1.6.", "temperature"),
        because("TRL's own script has 0.8.", "top_p"),
    ),
    # 28 % of the samples of a trial were right: both data sets have about 3,300 rows.
    preparations={"answers": sampled(3_300, 0.0), "right-answers": sampled(12_000, 1.0)},
    arms={
        "ssd": {},
        "moving-sampler": {"rollout_policy": "policy"},
        "unfiltered": {"family": "sft", "data": "prepared:answers"},
        "filtered": {"family": "sft", "data": "prepared:right-answers"},
    },
    profiles={"cpu": {"filter_empty": False}},
    claims=(
        Claim(
            "ssd-temperature-law",
            "Without truncation, the model fitted to samples at T and decoded at T' is the start "
            "decoded at T T'.",
            least(
                1e-12 - law(f"{LAWS}:composed_variation", 1.6, 0.75),
                1e-12 - law(f"{LAWS}:fit_gradients", 1.6),
            )
            > 0,
        ),
        Claim("ssd-tail-removed", "The mass outside the start's kept tokens falls.", NUCLEUS),
        Claim("ssd-head-kept", "The entropy within the kept tokens does not fall.", NUCLEUS),
        Claim("ssd-fork-lock", "More whole strings of a grammar are valid.", NO_GRAMMAR),
        Claim(
            "ssd-beats-decoding",
            "No decoding temperature of the start gives as many distinct valid strings.",
            NO_GRAMMAR,
        ),
        Claim(
            "ssd-unverified-ok",
            "Fine-tuning on all samples scores within 3 points of fine-tuning on the right ones.",
            SOLVED.of("unfiltered").about(SOLVED.of("filtered"), within=3.0),
            mechanism="data",
            healthy=("filtered",),  # the claim is on what unverified samples do
        ),
    ),
)
