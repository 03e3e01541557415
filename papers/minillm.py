"""MiniLLM minimises the reverse KL of sequences by a policy gradient with an exact next token.

Where the sources disagree, and what is not the paper's here:

- The paper's return is the mean of the rewards after a token; the official code divides their
  discounted sum by the remaining length with the token, TRL's mean is from the token on.
- The paper samples from a mixture with the teacher (0.2), corrects for it, and adds the loss of
  pre-training text; TRL does neither, and nor does it whiten returns, as the official code does.
- That loss is of the data's own completions here, with the weight 1, and runs leave it out: they
  compare with training on these completions.
- The official code multiplies rewards by 2, bounds them, and halves the single step; TRL and this
  code do not. TRL's advantage has a gradient, whose mean is 0, and its means are over padding too.
- TRL lists the paper under its old title, Knowledge Distillation of Large Language Models, and
  has removed the trainer.
- Without normalisation going on costs the expected sum of later rewards, with it their mean: the
  law has a chance of 0.1 to stop and a reward of -0.2 at each token, and says which way the policy
  is pushed, not how long answers become.
- The single step lowers the variance on average over drawn policies, not for each of them. All 27
  sequences of three tokens are enumerated.
- The student of a law is one Gaussian on 65 points, at the least divergence from a teacher with
  two modes.
- Runs are in the world `chain`, with digits whose right sums are even. The data is right answers,
  and token-level distillation on it is by the forward KL, as in the paper's baseline. A rollout is
  one update, where the repository has four.
- Prompts have at most 256 tokens in the repository.
- Rouge-L is as a later paper quotes it; larger students and GPT-4's scores are left out.
"""

from core.claims import START, Claim, Expected, Untestable, law, least, log2, probability
from core.paper import Paper, because, cite, in_regime, printed

STUDENTS, SEQUENCES = "core.laws.gaussian_students", "core.laws.sequence_kl"
STOPPING = "core.laws.stopping"
WORLD, TAUGHT = "chain-even", {"roles": {"teacher": "prepared:chain-even-teacher"}}
LAST = probability("kl_to_teacher/second_half")
GOES_WRONG = probability("share_gone").of(START) >= 0.1
DATA = {"family": "gkd"}

PAPER = Paper(
    slug="minillm",
    title="MiniLLM: Knowledge Distillation of Large Language Models",
    arxiv="2306.08543",
    family="minillm",
    config=(
        cite("eq. 2", single_step_decomposition=True, rkl_advantage=True, kd_temperature=1.0),
        cite("s2.2", gamma=1.0, return_from="next", length_normalization=True),
        cite("s2.2", teacher_mix_alpha=0.2),
        cite("unstated", lm_coef=1.0, num_generations=1, temperature=1.0),
        cite("repository", learning_rate=5e-6, max_steps=5000, per_device_train_batch_size=16),
        cite("repository", epsilon=0.2, num_iterations=4),
    ),
    trl_reasons=(
        because("TRL rewards a token for itself alone, and the paper for those after it.", "gamma"),
        because("TRL's return begins with the token's own reward.", "return_from"),
        because("TRL samples from the student.", "teacher_mix_alpha"),
        because("TRL has no loss of given text.", "lm_coef"),
        because("TRL counts gamma from the first token of a row where returns are not means."),
        because("TRL's means are over padding, and of the single step over a micro-batch."),
        because("TRL's advantage has a gradient, whose mean over samples is 0."),
    ),
    model="openai-community/gpt2",
    data="dolly-15k",
    arms={
        "minillm": {"at": {"cpu": {}}},
        "kd": {**DATA, **in_regime(WORLD, **TAUGHT, lmbda=0.0, beta=0.0)},
    },
    profiles={
        "cpu": {"regime": WORLD, **TAUGHT},
        "gpu": {"roles": {"teacher": "Qwen/Qwen2.5-1.5B-Instruct"}},
        "paper": {"roles": {"teacher": "openai-community/gpt2-xl"}},
    },
    reported=printed(
        "a later paper's table",
        ("DollyEval", "SelfInst", "VicunaEval"),
        "Rouge-L",
        {
            ("MiniLLM", "120M"): (24.6, 13.2, 16.9),
            ("KD", "120M"): (22.8, 10.8, 13.4),
            ("SeqKD", "120M"): (22.7, 10.1, 14.3),
            ("SFT without KD", "120M"): (23.2, 9.9, 14.3),
        },
        unit="Rouge-L",
    ),
    claims=(
        Claim(
            "minillm-less-overestimate",
            "A student too small for its teacher has less mass where the teacher has almost none "
            "at the least reverse KL than at the least forward KL.",
            law(f"{STUDENTS}:overestimated_mass", 1.0) < law(f"{STUDENTS}:overestimated_mass", 0.0),
        ),
        Claim(
            "minillm-exposure",
            "In the second half of its own answers a student of MiniLLM is nearer to its teacher "
            "than one of token-level distillation on the data.",
            log2(LAST.of("minillm")) < log2(LAST.of("kd")),
            mechanism="distillation",
            acts=GOES_WRONG,
            expects=Expected(effect=-0.1, spread=0.3),
        ),
        Claim(
            "minillm-single-step-variance",
            "The exact term of the next token lowers the variance of the gradient, on average over "
            "policies, and leaves its mean that of the KL of sequences.",
            least(
                1 - law(f"{SEQUENCES}:mean_variance_ratio"),
                1e-12 - law(f"{SEQUENCES}:gradient_errors", "single_step"),
            )
            > 0,
        ),
        Claim(
            "minillm-length-norm",
            "Sums of later rewards push a student to stop more than five times as hard as means.",
            law(f"{STOPPING}:push", "sum") / law(f"{STOPPING}:push", "mean") > 5,
        ),
        Claim(
            "minillm-teacher-mix",
            "Sampling partly from the teacher prevents degenerate samples early in training.",
            Untestable(
                "no room: answers of a fixed length cannot degenerate, and no sample of a start "
                "repeats itself"
            ),
        ),
        Claim(
            "minillm-calibration",
            "The student is better calibrated than with the forward KL.",
            Untestable(
                "no room: where a fifth of the answers that a teacher learns from are wrong, both "
                "students are calibrated up to noise on a seed that is not judged: the errors of "
                "whole answers are 0.035 and 0.046, of which chance alone gives 0.03"
            ),
        ),
    ),
)
