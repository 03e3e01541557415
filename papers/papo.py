"""PAPO adds to GRPO that the answer must depend on the picture: a KL between two passes is raised.

Where the sources disagree, and what is not the paper's here:

- It trains vision-language models, and there are no images here: it is planned and not run. Its
  three terms are `core.losses.perception`, whose laws are judged.
- The entropies of both passes are subtracted from what is maximised, so they are lowered: they
  hinder a policy from raising the KL by scattering its answers to the masked picture.
- The masked pass has no gradient in the KL, as in the authors' code. TRL's trainer, until 1.7.1,
  let it through, took the KL of the inverse ratio and bounded it by 0.2, took padding into its
  means, and did not divide its terms by the accumulation.
- The coefficients are those of PAPO with DAPO's loss, or of GRPO with 7B: 0.02 for the KL without
  entropies is that of GRPO with 3B, which is declared here.
- TRL's paper index had 0.01, 0.02 and 0.02, and said that a ratio of 0.6 masks 40 % of a picture;
  the paper masks 60 %, by patches of 14.
- 1920 completions a rollout are 384 questions times 5, in three updates of 128 questions.
- The weights of accuracy and format in the reward are not known; both are 1 here.
"""

from core.claims import Claim, Untestable, law
from core.paper import Paper, cite, printed
from core.rewards import Accuracy, Format

IMAGES = Untestable("needs image inputs")
AVERAGES = ("Average8", "vision-dependent average", "general average", "Geo3k", "Counting")

PAPER = Paper(
    slug="papo",
    title="Perception-Aware Policy Optimization for Multimodal Reasoning",
    arxiv="2507.06448",
    family="grpo",
    config=(
        cite("paper, PAPO-G", loss_type="grpo", beta=0.01, use_bias_correction_kl=False),
        cite("paper", epsilon=0.2, learning_rate=1e-6, num_train_epochs=2.0),
        cite("paper", num_generations=5, top_p=0.99, max_completion_length=2048),
        cite("paper: 384 questions, 128 an update", per_device_train_batch_size=20),
        cite("paper: 384 questions, 128 an update", gradient_accumulation_steps=32),
        cite("paper: 384 questions, 128 an update", steps_per_generation=96),
        cite("unstated", temperature=1.0, scale_rewards="group"),
    ),
    rewards=(Accuracy(), Format()),
    model="Qwen/Qwen2.5-VL-3B-Instruct",
    data="virl39k",
    not_run=(
        "its models see pictures, and rows with images are not read; its three terms are "
        "core.losses.perception"
    ),
    reported=(
        *printed(
            "table 1",
            AVERAGES,
            "avg@8",
            {
                ("GRPO", "3B"): (47.92, 42.97, 51.89, 28.72, None),
                ("PAPO-G", "3B"): (49.92, 45.57, 53.39, 30.95, None),
                ("GRPO", "7B"): (58.78, 54.11, 62.51, None, 73.94),
                ("PAPO-G", "7B"): (61.66, 59.37, 63.5, None, 89.81),
                ("DAPO", "3B"): (52.4, 49.11, 55.02, None, None),
                ("PAPO-D", "3B"): (55.24, 52.93, 57.09, None, None),
                ("DAPO", "7B"): (55.01, 51.79, 57.58, None, None),
                ("PAPO-D", "7B"): (63.16, 59.82, 65.83, None, None),
                ("GRPO, Qwen3-VL", "2B"): (46.84, 43.97, None, None, None),
                ("PAPO, Qwen3-VL", "2B"): (49.3, 46.73, None, None, None),
            },
        ),
        *printed(
            "error analysis",
            ("perception errors", "share of errors that are perceptual"),
            "of wrong answers",
            {"PAPO, fewer than with GRPO": (30.5, None), "RLVR": (None, 67.0)},
        ),
    ),
    arms={"papo": {}},
    claims=(
        Claim(
            "kl-nonnegative",
            "A token's perception KL is never negative, and is 0 where both passes agree alone.",
            law("core.laws.perception:least_terms") >= law("core.laws.perception:agreement_error"),
        ),
        Claim("perception-kl-rises", "The answers come to depend more on the picture.", IMAGES),
        Claim("gain-vision-dependent", "Tasks that need the picture gain more.", IMAGES),
        Claim(
            "no-entropy-collapses", "A large KL alone, without the entropies, collapses.", IMAGES
        ),
        Claim("mask-ratio-middle", "Masking 60 % is better than masking 20 %.", IMAGES),
        Claim("perception-errors-fall", "Fewer wrong answers misread the picture.", IMAGES),
    ),
)
