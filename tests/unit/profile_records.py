"""Records of profiles, made of runs whose numbers are known."""

import random

from core.profiles.naming import find_algorithm
from core.profiles.probes import PROBES
from core.profiles.record import profile_record
from core.profiles.runs import ProfileRuns, Request
from core.records.record import write_record
from core.records.schema import TrialRow

# What runs measure beside the accuracy, each with how good it is: 1 for good, -1 for bad.
CURVES = {
    "reward": 0.004,
    "entropy": 0.002,
    "completions/mean_length": 0.1,
    "completions/wrong_mean_length": -0.4,
    "completions/clipped_ratio": -0.002,
    "sampling/sampling_logp_difference/mean": 0.0,
    "clip_ratio/region_mean": 0.0,
    "frac_reward_zero_std": 0.0,
    "rewards/scaled_length_within/mean": 0.0,
}
MIDDLE = {
    **dict.fromkeys(("reward", "entropy", "frac_reward_zero_std"), 0.45),
    **dict.fromkeys(("completions/mean_length", "completions/wrong_mean_length"), 40.0),
    "rewards/scaled_length_within/mean": 5.0,
}


def fields(training, goodness):
    """The fields of a run that is `goodness` points better than another one."""
    world = training.regime.partition("-")[0]
    suite = f"nano-{world}"
    row = {
        "benchmark": suite,
        "mirrors": suite,
        "metric": "top1",
        "mode": "cot",
        "temperature": 1.0,
        "digest": "1" * 64,
    }
    curves = {
        name: [[step, MIDDLE.get(name, 0.3) + slope * goodness] for step in (16, 80, 160)]
        for name, slope in CURVES.items()
    }
    half, whole = 45.0 + goodness / 2, 60.0 + goodness
    curves["held_out/accuracy"] = [[0, 20.0], [80, half], [160, whole]]
    if training.name == "hard-prompts":
        curves["reward"][0][1] = 0.07
    sampled = {
        "digest": "2" * 64,
        "k": [1, 32],
        "pass": [60.0 + goodness, 80.0 + goodness],
        "distinct": [0.6, 1.5 + 0.005 * goodness],
    }
    return {
        "curves": curves,
        "scores": [row | {"value": 60.0 + goodness}],
        "start_scores": [row | {"value": 20.0}],
        "sampling": {suite: {"mirrors": suite, "before": sampled, "after": sampled}},
        "probabilities": {"kl_to_start": {"before": 0.0, "after": 0.8 - 0.01 * goodness}},
        "train": {"weights": "0" * 64},
    }


def made(name, goodness, *, seeds=8, only=None, failures=None):
    """Write the record of a profile that is `goodness` points better, and return it."""
    probes = tuple(PROBES[name] for name in only or PROBES)
    request = Request(
        algorithm=find_algorithm([name]), arguments=(name,), probes=probes, seeds=seeds, jobs=1
    )
    noise = random.Random(name)
    records = {
        t.name: {s: fields(t, goodness + noise.gauss(0, 1)) for s in request.seeds_of(t)}
        for t in request.trainings
    }
    trial: TrialRow = {"factor": 1.0, "learning_rate": 3e-4, "steps": 160, "curve": [[160, 50.0]]}
    runs = ProfileRuns(
        trials={name: [trial] for name in ("choice", "many", "length")},
        records=records,
        failures=failures or {},
    )
    return write_record(profile_record(request, runs, 1.0))


def record_all():
    """Record plain GRPO at 0, mechanisms at 20, what lacks one at -20, DAPO at 10, by name."""
    for probe in PROBES.values():
        for name, goodness in ((probe.mechanism, 20), (probe.without, -20)):
            if name != "grpo":
                made(name, goodness, only=[p.name for p in PROBES.values() if name in pair(p)])
    return {"grpo": made("grpo", 0), "dapo": made("dapo", 10)}


def pair(probe):
    return probe.mechanism, probe.without
