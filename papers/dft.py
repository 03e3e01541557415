"""Dynamic fine-tuning multiplies the loss of each token by its probability, without a gradient.

Where the sources disagree, and what is not the paper's here:

- The printed numbers were read from transcriptions that agree; cells that were not legible are
  left out.
- The paper trains on 100,000 rows of NuminaMath-CoT; which ones is not said, so all are taken.
- Minerva and OlympiadBench are printed and are no benchmarks here.
- Where one answer alone is right the authors expect no gain; the pocket world's solutions are such.
- There the start has solved its data before the first update, so that both losses hardly move it.
  What the losses do to data that is not learnt yet is compared in nano worlds. In `sums` a fifth of
  the targets are wrong sums; in `many` each problem has many right answers. The noise, its share,
  rates and lengths of training are ours.
- With right sums alone both losses are compared after six times as many updates, where NLL has
  ended: on the trial seed DFT is 5 points ahead after 160 updates, and 0.6 behind after 960. There
  it is 0.8 ahead at twice the rate (93 and 92 % right), and 4.1 at half the rate, where 960 updates
  leave 80 % to NLL.
- Of the noisy targets DFT ends with a higher NLL than its start. The claims on training NLL and on
  extreme probabilities ask that both losses end below it, and are inert.
- A start is trained by NLL, as DFT hardly learns from random weights: all probabilities are small.
- Accuracies are those of samples at temperature 1, on problems without noise.
"""

from core.claims import START, Claim, Expected, late, law, least, probability, score
from core.paper import Evaluation, Paper, cite, in_regime, printed

COLUMNS = ("math500", "Minerva", "OlympiadBench", "aime24", "amc23", "Average")
GRADIENT = "core.laws.update_weights:gradient_norms"
SEEN, EXTREME = probability("nll/training"), probability("extreme_share/training")
SUMS, MANY = score("nano-sums", temperature=1.0), score("nano-many", temperature=1.0)
RATES = {"": 4e-4, "-x2": 8e-4, "-x4": 1.6e-3}  # on noisy targets, by the ending of an arm's name
LEARNT = tuple(SEEN.of(START) - SEEN.of(arm) >= 0.0 for arm in ("sft-sums", "dft-sums"))
NEGLECTED = SEEN.of("dft-sums") - SEEN.of("sft-sums") >= 0.03  # nats: of unlikely targets
# DFT is better at the highest of these rates than at the lowest, and than at twice the highest.
BEST = tuple(SUMS.of("dft-sums-x4") - SUMS.of(f"dft-sums{end}") >= 0 for end in ("", "-x8"))


PAPER = Paper(
    slug="dft",
    title="On the Generalization of SFT: A Reinforcement Learning Perspective",
    arxiv="2508.05629",
    family="sft",
    config=(
        cite("eq. 9", loss_type="dft"),
        cite("s4.1", learning_rate=5e-5, max_length=2048, lr_scheduler_type="cosine"),
        cite("s4.1", warmup_steps=0.1, num_train_epochs=1.0, optim="adamw_torch"),
        cite("repository", per_device_train_batch_size=8, gradient_accumulation_steps=32),
    ),
    model="Qwen/Qwen2.5-Math-1.5B",
    data="numina-math-cot",
    benchmarks=("math500", "aime24", "amc23"),
    evaluations=(Evaluation(samples=16, temperature=1.0, passage="table 1"),),
    reported=(
        *printed(
            "table 1",
            COLUMNS,
            "avg@16",
            {
                ("LLaMA-3.2 base", "3B"): (1.63, 1.36, 1.01, 0.41, 1.56, 1.19),
                ("LLaMA-3.2 SFT", "3B"): (8.65, 2.38, 2.06, 0.0, 3.13, 3.24),
                ("LLaMA-3.2 DFT", "3B"): (12.79, 2.84, 2.9, 0.83, 3.91, 4.65),
                ("LLaMA-3.1 base", "8B"): (None, None, None, None, None, 1.0),
                ("LLaMA-3.1 SFT", "8B"): (16.85, 5.78, 3.88, 0.0, 5.16, 6.33),
                ("LLaMA-3.1 DFT", "8B"): (27.44, 8.26, 6.94, 0.41, 12.03, 11.02),
                ("DeepSeekMath base", "7B"): (None, None, None, None, None, 2.64),
                ("DeepSeekMath SFT", "7B"): (26.83, None, None, None, None, 9.82),
                ("DeepSeekMath DFT", "7B"): (41.46, 16.79, 15.0, 1.24, 16.25, 18.15),
                ("Qwen2.5-Math base", "1.5B"): (31.66, 8.51, 15.88, 4.16, 19.38, 15.92),
                ("Qwen2.5-Math SFT", "1.5B"): (43.76, 13.04, 12.63, 1.87, 18.75, 18.01),
                ("Qwen2.5-Math DFT", "1.5B"): (64.89, 20.94, 27.08, 6.87, 38.13, 31.58),
                ("Qwen2.5-Math base", "7B"): (40.12, 14.39, 17.12, 6.68, 27.96, 21.25),
                ("Qwen2.5-Math SFT", "7B"): (53.96, 16.66, 18.93, 2.48, 26.09, 23.62),
                ("Qwen2.5-Math DFT", "7B"): (68.2, 30.16, 33.83, 8.56, 45.0, 37.15),
            },
        ),
        *printed(
            "table of offline RL",
            ("math500", "Average"),
            "avg@16",
            {
                ("Qwen2.5-Math DPO", "1.5B"): (None, 23.2),
                ("Qwen2.5-Math RFT", "1.5B"): (None, 23.97),
                ("Qwen2.5-Math PPO", "1.5B"): (None, 28.66),
                ("Qwen2.5-Math GRPO", "1.5B"): (62.86, 32.0),
                ("Qwen2.5-Math iw-SFT", "1.5B"): (None, 31.86),
                ("Qwen2.5-Math DFT", "1.5B"): (64.71, 35.43),
            },
        ),
        *printed(
            "table of code",
            ("HumanEval",),
            "pass@1",
            {
                ("Qwen2.5-Coder base", "7B"): (62.2,),
                ("Qwen2.5-Coder SFT", "7B"): (54.9,),
                ("Qwen2.5-Coder DFT", "7B"): (67.7,),
                ("Qwen2.5-Coder base", "3B"): (52.4,),
                ("Qwen2.5-Coder SFT", "3B"): (51.8,),
                ("Qwen2.5-Coder DFT", "3B"): (56.7,),
            },
        ),
    ),
    trl_index={
        "loss_type": "dft",
        "learning_rate": 5e-5,
        "max_length": 2048,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 32,
    },
    arms={
        "dft": {"at": {"cpu": {"eval_limit": 100}}},
        "sft": {"loss_type": "nll"},
        **{
            f"{name}-sums{end}": in_regime("sums", loss_type=loss, learning_rate=rate)
            for name, loss in (("dft", "dft"), ("sft", "nll"))
            for end, rate in RATES.items()
        },
        "dft-sums-x8": in_regime("sums", loss_type="dft", learning_rate=3.2e-3),
        **{
            f"{name}-clean": in_regime(
                "sums", data="nano-sums-right", loss_type=loss, max_steps=960, heldout_every=160
            )
            for name, loss in (("dft", "dft"), ("sft", "nll"))
        },
        "dft-many": in_regime("many-warm", loss_type="dft"),
        "sft-many": in_regime("many-warm"),
    },
    profiles={"cpu": {"benchmarks": ("math500",), "twins": {"math500": "pocket-math"}}},
    claims=(
        Claim(
            "dft-grad-small-on-unlikely",
            "The gradient of a token's loss is that of SFT times the token's probability.",
            (law(GRADIENT, "dft") / law(GRADIENT, "nll")).about(
                law("core.laws.update_weights:probabilities"), within=1e-12
            ),
        ),
        Claim(
            "sft-lower-train-nll",
            "SFT ends with a lower training NLL than DFT.",
            SEEN.of("sft-sums") < SEEN.of("dft-sums"),
            mechanism="learning signal",
            acts=LEARNT,
            expects=Expected(effect=-0.07, spread=0.02),
        ),
        Claim(
            "dft-polarises",
            "After DFT more tokens have extreme probabilities.",
            EXTREME.of("dft-sums") > EXTREME.of("sft-sums"),
            mechanism="learning signal",
            acts=LEARNT,
            expects=Expected(effect=0.1, spread=0.02),
        ),
        Claim(
            "dft-noise-robust",
            "After training on noisy targets DFT is right more often than SFT.",
            SUMS.of("dft-sums") > SUMS.of("sft-sums"),
            mechanism="learning signal",
            acts=NEGLECTED,
            expects=Expected(effect=21.0, spread=3.0),
        ),
        Claim(
            "dft-generalises",
            "Where several answers are right, DFT samples right ones more often.",
            MANY.of("dft-many") > MANY.of("sft-many"),
            mechanism="learning signal",
            acts=(MANY.of(START) >= 50.0, MANY.of(START) <= 80.0),
            expects=Expected(effect=4.0, spread=4.0),
        ),
        Claim(
            "dft-no-gain-deterministic",
            "With one right answer DFT gains nothing.",
            SUMS.of("dft-clean").about(SUMS.of("sft-clean"), within=3.0),
            mechanism="learning signal",
            # nats a token: the loss has ended, and accuracies have room above and below
            acts=(
                late("loss").of("sft-clean") <= 0.1,
                SUMS.of("sft-clean") <= 97.0,
                SUMS.of("sft-clean") - SUMS.of(START) >= 30.0,
            ),
            expects=Expected(effect=0.0, spread=2.5),
        ),
        Claim(
            "dft-lr-robust",
            "On noisy targets the gain lasts over learning rates of 1, 2 and 4 times.",
            least(*(SUMS.of(f"dft-sums{end}") - SUMS.of(f"sft-sums{end}") for end in RATES)) >= 0,
            mechanism="learning signal",
            acts=BEST,
            expects=Expected(effect=20.0, spread=4.0),
        ),
    ),
)
