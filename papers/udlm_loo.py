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
- The trainer here has neither the left-to-right loss nor the conditioning on an own prediction.
- The world of the runs is ours: texts of 16 symbols of a Markov chain on 8. The network is not told
  the level of noise. Texts are drawn in 32 steps of the reverse process. The rate is the better one
  for the losses of both arms; at half of it, after 600 updates, the two trial seeds have the same
  sign, +0.01 and +0.10.
- No numeric result was at hand.
"""

from math import log

from core.claims import Claim, Expected, final, law, probability
from core.paper import Paper, cite

NOISE = "core.laws.uniform_noise"
DISTANCE, LOSS = probability("bigrams/distance"), final("loss")
LEARNT = log(8) / 2  # half of the loss of a network that knows no more than the symbols

PAPER = Paper(
    slug="udlm-loo",
    title="Uniform Diffusion Models Revisited: Leave-One-Out Denoiser and Absorbing State "
    "Reformulation",
    arxiv="2605.22765",
    family="diffusion",
    config=(
        cite("TRL's example", learning_rate=1.5e-4, adam_beta2=0.99, weight_decay=1e-4),
        cite("TRL's example", warmup_steps=25, max_steps=800, per_device_train_batch_size=8),
        cite("TRL's example", max_length=1024, use_peft=True, lora_r=16, lora_alpha=32),
    ),
    model="google/diffusiongemma-26B-A4B-it",
    data="sudoku",
    arms={"loo": {}, "mean": {"model_prediction": "mean"}},
    profiles={"cpu": {"regime": "canvas"}},
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
            DISTANCE.of("loo") < DISTANCE.of("mean"),
            mechanism="learning signal",
            healthy=(),
            acts=(LOSS.of("loo") <= LEARNT, LOSS.of("mean") <= LEARNT),
            expects=Expected(effect=-0.1, spread=0.07),
        ),
    ),
)
