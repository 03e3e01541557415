"""DAPO repairs four failures of GRPO on long chains of thought; no KL, no reference model.

Where the sources disagree, and what is not the paper's here:

- Eq. 12 divides by the tokens of each prompt's group; verl and TRL divide by those of the batch,
  and so does `loss_type="dapo"` here. `loss_aggregate="prompt_mean"` is the equation as it is
  printed.
- TRL's paper index has no `steps_per_generation`, so that one rollout is one update: the ratio is
  1 and Clip-Higher does nothing. The paper makes 16 updates of a rollout; the regime of the small
  scale has 8.
- TRL has no dynamic sampling. Its index names five components, the paper four: filtering answers
  that are cut is part of the fourth.
- The paper says that prompts are drawn until the batch is full. Here there is a bound, after which
  it is filled with groups without signal.
- An answer that is cut keeps its reward in the mean and deviation of its group.
- Dynamic sampling is worth 8 points in the paper and 2 in verl's reproduction.
- In the pocket world no answer reaches the limit of the main regime, so that neither the filter
  nor the punishment could act there: both are tested in the world `length` with a limit of 16
  tokens. The group deviation makes rewards of 1 and 0 what 1 and -1 are, but for a thousandth.
- With groups of 16 few are without signal: dynamic sampling is tested with groups of 4.
"""

from core.claims import Claim, Expected, early, late, law, middle, score, whole
from core.paper import Evaluation, Paper, because, cite, in_regime, printed
from core.rewards import Accuracy, SoftOverlong

L_MAX, L_CACHE = 20_480, 4_096  # s4.1
CORRECT = Accuracy(right=1.0, wrong=-1.0)
IDLE_GROUPS = "frac_reward_zero_std"
WRONG, CUT = "completions/wrong_mean_length", "completions/clipped_ratio"
GROUPS, LONGEST = (
    "core.laws.groups:groups_without_signal",
    "core.laws.ratios:longest_shares",
)
CLIP = {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28}
DYNAMIC = {
    "rollout_selection": "filled",
    "selection_reward": "accuracy",
    "selection_fills_up": True,
}
ALL = {"rollout_selection": "all", "selection_reward": None, "selection_fills_up": False}
PLAIN = {**ALL, "mask_truncated_completions": False, "rewards": (CORRECT,)}
TIGHT = {"regime": "tight", "rewards": (Accuracy(),)}
SHORT = {"max_completion_length": 16, "eval_max_tokens": 16}  # cuts more than a tenth of answers
SMALL_GROUPS = {"num_generations": 4, "max_steps": 80}  # of 16 answers most have a signal
SOLVED, SOLVED_IN_TIME = (score(f"nano-{name}", temperature=1.0) for name in ("choice", "length"))

# In the pocket world the upper clip stops 0.5 % of the tokens, and answers have nearly one length.
CLIPS = whole("clip_ratio/high_mean").of("symmetric-clip-far") >= 0.01
LEARNS = (
    late("reward", 0.75).of("symmetric-clip-far") - early("reward", 0.25).of("symmetric-clip-far")
    >= 0.1
)
IDLES = whole(IDLE_GROUPS).of("groups-of-4") >= 0.3
LENGTHENS = (
    middle(WRONG).of("answer-mean-length") - early(WRONG, 0.25).of("answer-mean-length") >= 5
)
CUTS = whole(CUT).of("plain-tight") >= 0.1

PAPER = Paper(
    slug="dapo",
    title="DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    arxiv="2503.14476",
    family="grpo",
    config=(
        cite("eq. 12", loss_type="dapo"),
        cite("eq. 11", **DYNAMIC),
        cite("eq. 9", scale_rewards="group"),
        cite("s2.3", beta=0.0),
        cite("s3.4", mask_truncated_completions=True),
        cite("s4.1", epsilon=0.2, epsilon_high=0.28, learning_rate=1e-6),
        cite("s4.1", lr_scheduler_type="constant_with_warmup", warmup_steps=320),  # 20 rollouts
        cite("s4.1", num_generations=16, max_completion_length=L_MAX, temperature=1.0),
        cite("s4.1", per_device_train_batch_size=512, steps_per_generation=16),
        cite("s4.1", gradient_accumulation_steps=1),
        cite("unstated", selection_draws=10),
    ),
    rewards=(CORRECT, SoftOverlong(L_MAX, L_CACHE)),
    model="Qwen/Qwen2.5-32B",
    data="dapo-math-17k",
    benchmarks=("aime24",),
    evaluations=(Evaluation(samples=32, temperature=1.0, top_p=0.7, passage="s4.1"),),
    reported=(
        *printed(
            "table 1",
            ("aime24",),
            "avg@32",
            {
                ("DeepSeek-R1-Zero-Qwen", "32B"): (47.0,),
                ("naive GRPO", "32B"): (30.0,),
                ("+ overlong filtering", "32B"): (36.0,),
                ("+ clip-higher", "32B"): (38.0,),
                ("+ soft overlong punishment", "32B"): (41.0,),
                ("+ token-level loss", "32B"): (42.0,),
                ("DAPO (+ dynamic sampling)", "32B"): (50.0,),
            },
        ),
        *printed(
            "verl's documentation",
            ("aime24",),
            "avg@32",
            {
                ("DAPO", "32B"): (52.0,),
                ("DAPO without dynamic sampling", "32B"): (50.0,),
                ("DAPO without token-level loss and dynamic sampling", "32B"): (44.0,),
            },
        ),
    ),
    arms={
        "dapo": {},
        "no-dynamic-sampling": ALL,
        "symmetric-clip": {**ALL, "epsilon_high": 0.2},
        "sequence-level": {**ALL, "loss_type": "grpo"},
        "plain": {**PLAIN, "at": {"cpu": TIGHT}},
        "filter": {**PLAIN, "mask_truncated_completions": True, "at": {"cpu": TIGHT}},
        "punishment": {
            **PLAIN,
            "rewards": (CORRECT, SoftOverlong(L_MAX, L_CACHE)),
            "at": {"cpu": {**TIGHT, "rewards": (CORRECT, SoftOverlong(40, 8))}},
        },
        "clip-higher-far": in_regime("choice-far", epsilon_high=0.28),
        "symmetric-clip-far": in_regime("choice-far"),
        "dynamic-groups-of-4": in_regime("choice", **SMALL_GROUPS, **DYNAMIC),
        "groups-of-4": in_regime("choice", **SMALL_GROUPS),
        "token-mean-length": in_regime("length"),
        "answer-mean-length": in_regime("length", loss_type="grpo"),
        "plain-tight": in_regime("length-tight", **SHORT),
        "filter-tight": in_regime("length-tight", **SHORT, mask_truncated_completions=True),
        "punishment-tight": in_regime(
            "length-tight", **SHORT, rewards=(Accuracy(), SoftOverlong(16, 4))
        ),
    },
    profiles={
        "cpu": {
            "regime": "off8",
            **CLIP,
            **DYNAMIC,
            "twins": {"aime24": "pocket-math"},
            "eval_limit": 60,
        },
        "gpu": {
            "gradient_accumulation_steps": 2,
            "max_steps": 800,
            "heldout_every": 80,
            "rewards": (CORRECT, SoftOverlong(1024, 205)),
            "max_completion_length": 1024,
        },
    },
    trl_index={
        **CLIP,
        "mask_truncated_completions": True,
        "per_device_train_batch_size": 512,
        "num_generations": 16,
        "max_completion_length": L_MAX,
        "beta": 0.0,
    },
    trl_reasons=(
        because(
            "The entry makes one update of a rollout, at whose ratio of 1 no clip acts; the paper "
            "makes 16.",
            "steps_per_generation",
        ),
        because("TRL has no dynamic sampling."),
        because(
            "The entry names the punishment of long answers as a reward of its own, without the "
            "paper's 1 and -1 for right and wrong answers."
        ),
    ),
    claims=(
        Claim(
            "clip-higher-entropy",
            "Widening the upper clip alone keeps the entropy up.",
            late("entropy").of("clip-higher-far") > late("entropy").of("symmetric-clip-far"),
            mechanism="clipping",
            acts=CLIPS,
            expects=Expected(effect=-0.021, spread=0.047),
        ),
        Claim(
            "zero-signal-groups-grow",
            "Without dynamic sampling groups without signal become more frequent in training.",
            late(IDLE_GROUPS, 0.75).of("symmetric-clip-far")
            > early(IDLE_GROUPS, 0.25).of("symmetric-clip-far"),
            mechanism="groups without signal",
            acts=LEARNS,
            expects=Expected(effect=0.16, spread=0.099),
        ),
        Claim(
            "dynamic-sampling-steps",
            "With dynamic sampling the policy is right more often after as many updates.",
            SOLVED.of("dynamic-groups-of-4") > SOLVED.of("groups-of-4"),
            mechanism="groups without signal",
            acts=IDLES,
            expects=Expected(effect=4.9, spread=0.35),
        ),
        Claim(
            "dynamic-sampling-gradient",
            "No group of a dynamically sampled batch is without signal.",
            law(GROUPS, "filled") == 0.0,
        ),
        Claim(
            "token-level-weights-long",
            "A mean over tokens gives the longest answer more weight than a mean over answers.",
            law(LONGEST, "dapo") > law(LONGEST, "grpo"),
        ),
        Claim(
            "token-level-length",
            "A mean over tokens keeps wrong answers shorter than a mean over answers.",
            middle(WRONG).of("token-mean-length") < middle(WRONG).of("answer-mean-length"),
            mechanism="length",
            acts=LENGTHENS,
            expects=Expected(effect=-20, spread=2.3),
        ),
        Claim(
            "overlong-filter-stability",
            "Where answers are often cut, leaving these out of the loss raises the accuracy.",
            SOLVED_IN_TIME.of("filter-tight") > SOLVED_IN_TIME.of("plain-tight"),
            mechanism="length",
            acts=CUTS,
            expects=Expected(effect=-8.0, spread=4.0),
        ),
        Claim(
            "soft-punishment-shortens",
            "The punishment of long answers lowers the share of those that are cut.",
            whole(CUT).of("punishment-tight") < whole(CUT).of("plain-tight"),
            mechanism="length",
            acts=CUTS,
            expects=Expected(effect=-0.1, spread=0.03),
        ),
    ),
)
