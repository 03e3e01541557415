"""DeepSeekMath introduces GRPO: the group's own mean and deviation replace PPO's critic.

Where the sources disagree, and what is not the paper's here:

- The paper's reward is a learned reward model (s4.2, learning rate 2e-5) that was not published.
  All scales use the rule-based accuracy reward, so reaching the printed numbers is not promised.
- Iterative GRPO also retrains that reward model with 10 % replay (s4.1.4). A rule needs no
  retraining: the arm `iterative` only resets the reference to the current policy.
- The clip width is not printed; with one update per rollout the ratio is 1 and it never binds.
- The paper writes std without saying population or sample; the sample one (n - 1) is used, as TRL.
- TRL's paper index gives DeepSeek-R1's settings for this paper (beta 0.001, epsilon 10, 16
  samples). Its defaults differ too: loss_type 'dapo', beta 0, k3 times the importance ratio.
- Two cells of Gemini are votes over 32 samples, not top1. The Maj@K and Pass@K curves of figure 7
  are not tabulated.
- 1024 completions an update are 16 questions times 64 samples. Written for one process; with W
  processes, divide `gradient_accumulation_steps` and `steps_per_generation` by W.
"""

from core.claims import START, Claim, gain, gain_at_k, late, law, score
from core.paper import Layout, Paper, because, cite, marked, printed
from core.rewards import Accuracy, LengthWithin, Shuffled, StepAccuracy

BENCHMARKS = ("gsm8k", "math", "mgsm_zh", "cmath")
TRAINED, UNSEEN = ("gsm8k", "math"), ("mgsm_zh", "cmath")
HELD_OUT = "held_out/accuracy"
# As in table 5; at the cpu scale programs are not run.
BOTH_MODES = {"eval_modes": ("cot", "tir")}

CLOSED_COT = {
    "Gemini Ultra": (marked("maj@32", 94.4), 53.2, None, None),
    "GPT-4": (92.0, 52.9, None, 86.0),
    "Inflection-2": (81.4, 34.8, None, None),
    "GPT-3.5": (80.8, 34.1, None, 73.8),
    "Gemini Pro": (marked("maj@32", 86.5), 32.6, None, None),
    "Grok-1": (62.9, 23.9, None, None),
    "Baichuan-3": (88.2, 49.2, None, None),
    "GLM-4": (87.6, 47.9, None, None),
}
OPEN_COT = {
    ("InternLM2-Math", "20B"): (82.6, 37.7, None, None),
    ("Qwen", "72B"): (78.9, 35.2, None, None),
    ("Math-Shepherd-Mistral", "7B"): (84.1, 33.0, None, None),
    ("WizardMath-v1.1", "7B"): (83.2, 33.0, None, None),
    ("DeepSeek-LLM-Chat", "67B"): (84.1, 32.6, 74.0, 80.3),
    ("MetaMath", "70B"): (82.3, 26.6, 66.4, 70.9),
    ("SeaLLM-v2", "7B"): (78.2, 27.5, 64.8, None),
    ("ChatGLM3", "6B"): (72.3, 25.7, None, None),
    ("WizardMath-v1.0", "70B"): (81.6, 22.7, 64.8, 65.4),
    ("DeepSeekMath-Instruct", "7B"): (82.9, 46.8, 73.2, 84.6),
    ("DeepSeekMath-RL", "7B"): (88.2, 51.7, 79.6, 88.8),
}
CLOSED_TOOL = {"GPT-4 Code Interpreter": (97.0, 69.7, None, None)}
OPEN_TOOL = {
    ("InternLM2-Math", "20B"): (80.7, 54.3, None, None),
    ("DeepSeek-LLM-Chat", "67B"): (86.7, 51.1, 76.4, 85.4),
    ("ToRA", "34B"): (80.7, 50.8, 41.2, 53.4),
    ("MAmmoTH", "70B"): (76.9, 41.8, None, None),
    ("DeepSeekMath-Instruct", "7B"): (83.7, 57.4, 72.0, 84.3),
    ("DeepSeekMath-RL", "7B"): (86.7, 58.8, 78.4, 87.6),
}
ABSTRACT = {("DeepSeekMath", "7B"): (marked("maj@64", 60.9),)}

PAPER = Paper(
    slug="deepseekmath-grpo",
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    arxiv="2402.03300",
    family="grpo",
    config=(
        cite("s4.1.1 eq. 3", loss_type="grpo", importance_sampling_level="token"),
        cite("s4.1.1 eq. 4", use_bias_correction_kl=False),
        cite("s4.1.2", scale_rewards="group"),
        cite("s4.2", learning_rate=1e-6, beta=0.04, num_generations=64),
        cite("s4.2", max_completion_length=1024, num_iterations=1),
        cite("s4.2", per_device_train_batch_size=16, gradient_accumulation_steps=64),
        cite("s4.2", steps_per_generation=64),
        cite("unstated", epsilon=0.2, temperature=1.0, num_train_epochs=1.0),
        cite("unstated", lr_scheduler_type="constant"),
    ),
    rewards=(Accuracy(),),
    model="deepseek-ai/deepseek-math-7b-instruct",
    data="gsm8k+math",
    benchmarks=BENCHMARKS,
    reported=(
        *printed("table 5", BENCHMARKS, "top1", CLOSED_COT, block="cot", source="closed"),
        *printed("table 5", BENCHMARKS, "top1", OPEN_COT, block="cot", source="open"),
        *printed("table 5", BENCHMARKS, "top1", CLOSED_TOOL, block="tool", source="closed"),
        *printed("table 5", BENCHMARKS, "top1", OPEN_TOOL, block="tool", source="open"),
        *printed("abstract", ["math"], "top1", ABSTRACT, block="text", source="open"),
    ),
    layouts=(
        Layout(
            of="table 5",
            name="deepseekmath",
            caption="DeepSeekMath: accuracy in %",
            blocks={"cot": "Chain-of-thought reasoning", "tool": "Tool-integrated reasoning"},
            sources={"closed": "Closed-source models", "open": "Open-source models"},
            ranked=("open",),
            notes=("Bold: the best open-source cell of a benchmark, within its block.",),
        ),
        Layout(of="cpu", name="deepseekmath-pocket", caption="The pocket world: accuracy in %"),
    ),
    arms={
        "grpo": {},
        "online-rft": {"advantage_estimator": "correct", "beta": 0.0},
        "rft": {"advantage_estimator": "correct", "beta": 0.0, "rollout_policy": "reference"},
        "process": {"advantage_estimator": "process", "rewards": (StepAccuracy(),)},
        "iterative": {"sync_ref_model": True, "ref_model_mixup_alpha": 1.0},
        # Controls, of which neither should gain: rewards that say nothing, and fine-tuning on all
        # of the starting model's own samples.
        "shuffled-rewards": {"rewards": (Shuffled(Accuracy()),)},
        "own-samples": {
            "advantage_estimator": "correct",
            "beta": 0.0,
            "rollout_policy": "reference",
            "rewards": (LengthWithin(1024),),
        },
    },
    trl_index={
        "loss_type": "grpo",
        "beta": 0.001,
        "epsilon": 10.0,
        "num_generations": 16,
        "max_completion_length": 32_768,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 128,
        "steps_per_generation": 16,
    },
    trl_reasons=(
        because(
            "The entry has DeepSeek-R1's value; this paper prints its own.",
            "beta",
            "num_generations",
            "max_completion_length",
        ),
        because(
            "The entry has DeepSeek-R1's clip, which bounds a ratio above by 11 and below not at "
            "all; with one update per rollout neither acts.",
            "epsilon",
        ),
        because(
            "The entry makes several updates of a rollout, as DeepSeek-R1 does; here it is one of "
            "1024 completions.",
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
            "steps_per_generation",
        ),
        because("The paper's k3 is not weighed by the ratio.", "use_bias_correction_kl"),
    ),
    profiles={
        # Two rounds: the reference is reset once, half way through the steps.
        "cpu": {"max_steps": 36, "num_generations": 16, "ref_model_sync_steps": 18},
        "gpu": {"max_steps": 200, "num_generations": 16, "ref_model_sync_steps": 100, **BOTH_MODES},
        "paper": BOTH_MODES,
    },
    claims=(
        Claim(
            "grpo-improves-policy",
            "GRPO raises greedy accuracy over the starting model on the training domain.",
            score(*TRAINED).of("grpo") > score(*TRAINED).of(START),
            mechanism="learning signal",
        ),
        Claim(
            "ood-transfer",
            "Training on English questions only also raises accuracy on the Chinese benchmarks.",
            score(*UNSEEN).of("grpo") > score(*UNSEEN).of(START),
            mechanism="learning signal",
        ),
        Claim(
            "grpo-beats-online-rft",
            "At equal samples GRPO ends above Online RFT, which weights correct answers equally.",
            score(*TRAINED).of("grpo") > score(*TRAINED).of("online-rft"),
            mechanism="learning signal",
        ),
        Claim(
            "online-rft-beats-rft",
            "Sampling from the current policy beats sampling from the starting one, late on.",
            late(HELD_OUT).of("online-rft") > late(HELD_OUT).of("rft"),
            mechanism="learning signal",
        ),
        Claim(
            "process-beats-outcome",
            "Step-level supervision is at least as good as outcome supervision, within a point.",
            (score(*TRAINED).of("process") >= score(*TRAINED).of("grpo")).by(1.0),
            mechanism="learning signal",
        ),
        Claim(
            "iterative-rl-first-round",
            "Of two rounds of iterative GRPO the first gains more than the second, by more than in "
            "as many steps of GRPO without a reset.",
            gain(HELD_OUT, 0.0, 0.5).of("iterative") - gain(HELD_OUT, 0.5, 1.0).of("iterative")
            > gain(HELD_OUT, 0.0, 0.5).of("grpo") - gain(HELD_OUT, 0.5, 1.0).of("grpo"),
            mechanism="KL",
        ),
        Claim(
            "maj-not-pass",
            "RL raises Maj@K more than Pass@K at the largest K: it sharpens what is there.",
            gain_at_k("maj", *TRAINED).of("grpo") > gain_at_k("pass", *TRAINED).of("grpo"),
            mechanism="learning signal",
        ),
        Claim(
            "k3-nonnegative-unbiased",
            "k3 is never negative and unbiased; it varies less than -log u where no token is more "
            "than twice as likely to the reference as to the policy.",
            law("core.laws.kl_variance:variance", "k3", sound=True)
            < law("core.laws.kl_variance:variance", "k1"),
        ),
    ),
)
