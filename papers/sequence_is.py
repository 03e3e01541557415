"""One weight for a whole answer corrects for a sampler that differs; weights of tokens do not.

Where the sources disagree, and what is not the paper's here:

- A blog with curves alone. TRL's paper index has it in three sections, which share one field; here
  it is the weight of a whole answer, and those of tokens are `tis` and `mis`.
- Small replications dispute that weights of tokens do not do: there those of answers did worst.
- How the bias grows depends on the reward. It does where all steps have to be right, relative to
  the true gradient; with a reward of the last step it stops to grow.
- A bound on the product from above alone keeps nearly all long answers of the sampler, at a weight
  near 0. The length trap is of bounds on both sides, and so it is tested.
- Mismatch comes from an engine's arithmetic in the blog, and differs between machines; in the
  pocket world the sampler's weights are rounded to 4 bits, in the world `many` they are those of
  64 updates before.
- Rewards and data are of mathematics with tools, and were not published.
"""

from core.claims import START, Claim, Expected, law, probability, score, whole
from core.paper import Paper, because, cite, in_regime
from core.rewards import Accuracy

BIASES, GROWTH = "core.laws.horizon:biases", "core.laws.horizon:growth_of_variance"
KEPT = "core.laws.horizon:kept"
PRODUCT, MEAN = ("sequence_mask", 0.5, 2.0), ("geometric_mask", 0.95, 1.05)
UNLIKELY = probability("sampler_difference/unlikely_tokens").of(START)
LIKELY = probability("sampler_difference/likely_tokens").of(START)
MASK = {"vllm_importance_sampling_mode": "sequence_mask", "vllm_importance_sampling_clip_max": 2.0}
OLD = {"rollout_lag": 64, "vllm_importance_sampling_correction": True}
SOLVED = score("nano-many", temperature=1.0)
GAP = whole("sampling/sampling_logp_difference/mean")

PAPER = Paper(
    slug="sequence-is",
    title="When Speed Kills Stability: Demystifying RL Collapse from the Training-Inference "
    "Mismatch",
    url="https://yingru.notion.site/When-Speed-Kills-Stability-Demystifying-RL-Collapse-from-the-"
    "Training-Inference-Mismatch-271211a558b7808d8b12d403fd15edda",
    family="grpo",
    config=(
        cite("blog, Seq-MIS", vllm_importance_sampling_mode="sequence_mask"),
        cite("blog, typical bounds", vllm_importance_sampling_clip_max=2.0),
        cite("blog", use_vllm=True, vllm_importance_sampling_correction=True),
        cite("blog, experiments", learning_rate=1e-6, num_generations=16),
        cite("blog, experiments", per_device_train_batch_size=1024, steps_per_generation=1),
        cite("blog, experiments", gradient_accumulation_steps=1),
        cite("unstated", loss_type="dapo", epsilon=0.2, beta=0.0, scale_rewards="group"),
        cite("unstated", lr_scheduler_type="constant", temperature=1.0),
        cite("unstated", max_completion_length=16_384),
    ),
    rewards=(Accuracy(),),
    model="Qwen/Qwen3-14B-Base",
    data="tool-integrated-math-mix",
    benchmarks=("aime24",),
    arms={
        "sequence-mask": {},
        "token-truncate": {"vllm_importance_sampling_mode": "token_truncate"},
        "sequence-mask-lag": in_regime("many", **OLD, **MASK),
        "token-truncate-lag": in_regime(
            "many", **OLD, **MASK | {"vllm_importance_sampling_mode": "token_truncate"}
        ),
    },
    profiles={
        "cpu": {
            "regime": "int4",
            **MASK,
            "twins": {"aime24": "pocket-math"},
        },
    },
    trl_reasons=(
        because(
            "The section sets nothing of its own: it names the modes sequence_mask and "
            "sequence_truncate of the field that two other sections share."
        ),
    ),
    claims=(
        Claim(
            "token-is-biased",
            "Over two steps weights of tokens give a biased gradient, a weight of the answer none.",
            law(BIASES, "token", 2) > law(BIASES, "sequence", 2),
        ),
        Claim(
            "bias-grows-with-horizon",
            "Relative to the gradient the bias of weights of tokens grows with the steps.",
            law(BIASES, "token", 6) > law(BIASES, "token", 2),
        ),
        Claim(
            "seq-variance-exponential",
            "From 8 to 32 steps an answer's weight gains more variance than those of tokens.",
            law(GROWTH, "sequence", 32, 8) > law(GROWTH, "token", 32, 8),
        ),
        Claim(
            "length-trap",
            "Fixed bounds on the product leave fewer long answers than short ones, bounds on the "
            "geometric mean do not.",
            law(KEPT, *MEAN, 256) - law(KEPT, *MEAN, 16)
            > law(KEPT, *PRODUCT, 256) - law(KEPT, *PRODUCT, 16),
        ),
        Claim(
            "seq-mis-stable",
            "With a sampler that differs strongly the trained policy is right more often with a "
            "mask of whole answers than with weights of tokens.",
            SOLVED.of("sequence-mask-lag") > SOLVED.of("token-truncate-lag"),
            mechanism="off-policy correction",
            acts=GAP.of("token-truncate-lag") >= 0.2,  # nats a token
            expects=Expected(effect=-4.9, spread=3.7),
            healthy=("sequence-mask-lag",),  # that training fails with the others is the claim
        ),
        Claim(
            "low-prob-tokens-mismatch",
            "Sampler and trainer differ most on tokens that the sampler finds unlikely.",
            UNLIKELY > LIKELY,
            mechanism="off-policy correction",
        ),
    ),
)
