"""In diffusion with uniform noise a network that predicts a token from the others is a denoiser.

Where the sources disagree, and what is not the paper's here:

- TRL's index has another title: Reparameterizing Uniform Diffusion Models: the Leave-One-Out
  Denoiser.
- The settings are those of TRL's example script, which trains DiffusionGemma. Of the authors' data,
  LM1B, OpenWebText and Sudoku, the plan has the last; the others are texts without prompts.
- The example's alpha is 1 - t with t uniform, its loss a plain mean over the tokens of the canvas,
  to which it adds the loss of a left-to-right model, and half of its steps condition on their own
  prediction.
- The denoiser's logits are those of the network plus log(1 + K alpha / (1 - alpha)) at the noisy
  token; with `model_prediction="mean"` they are those of the network.
- No numeric result was at hand.
"""

from core.claims import Claim, Untestable, law
from core.paper import Paper, cite

NOISE = "core.laws.uniform_noise"

PAPER = Paper(
    slug="udlm-loo",
    title="Uniform Diffusion Models Revisited: Leave-One-Out Denoiser and Absorbing State "
    "Reformulation",
    arxiv="2605.22765",
    family="sft",
    config=(
        cite("TRL's example", learning_rate=1.5e-4, adam_beta2=0.99, weight_decay=1e-4),
        cite("TRL's example", warmup_steps=25, max_steps=800, per_device_train_batch_size=8),
        cite("TRL's example", max_length=1024, use_peft=True, lora_r=16, lora_alpha=32),
    ),
    model="google/diffusiongemma-26B-A4B-it",
    data="sudoku",
    not_run="no trainer here denoises tokens: its models read and write a text in both directions",
    claims=(
        Claim(
            "loo-bayes",
            "The shifted softmax is Bayes' rule for the leave-one-out posterior and the noise.",
            law(f"{NOISE}:bayes_errors").about(0.0, within=1e-12),
        ),
        Claim(
            "loo-init-loss",
            "Untrained, a leave-one-out posterior has a lower loss than a plain denoiser.",
            law(f"{NOISE}:initial_losses", "mean_loo") < law(f"{NOISE}:initial_losses", "mean"),
        ),
        Claim(
            "loo-generation",
            "Trained equally long, the leave-one-out posterior gives samples closer to the data.",
            Untestable("no trainer here denoises tokens, and none samples a text by denoising"),
        ),
    ),
)
