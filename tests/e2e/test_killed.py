"""Runs killed at random points of every phase end in the very files of a run that was not."""

import json
import signal
from random import Random
from typing import NamedTuple

import pytest
import torch
from changed_settings import changed
from killed import Server
from transformers import AutoModelForCausalLM
from wandb_files import rows as wandb_rows

from core.explain.jsonl import read_log
from core.stages.training import TIMES
from core.stages.watch.wandb_report import JOB

RUN = ("one", "deepseekmath-grpo", "--arm", "grpo", "--seed", 0, "data=gsm8k")
SMALL = (
    "num_generations=4",
    "max_completion_length=12",
    "eval_max_tokens=12",
    "eval_limit=2",
    "at_k_samples=2",
    "at_k_limit=2",
    "heldout_problems=2",
    "learning_rate=0.003",
    "save_steps=1",
)
FIRST = "one update a rollout"
OF_PAIRS = (
    "max_steps=24",
    "per_device_train_batch_size=4",
    "save_steps=1",
    "logging_steps=2",
    "learning_rate=0.003",
    "eval_max_tokens=12",
    "eval_limit=2",
    "at_k_samples=2",
    "at_k_limit=2",
)
CASES = {
    FIRST: ("max_steps=10", "per_device_train_batch_size=8", "heldout_every=2"),
    "several updates a rollout, a moving reference": (
        "max_steps=16",
        "per_device_train_batch_size=4",
        "gradient_accumulation_steps=2",
        "steps_per_generation=4",
        "num_iterations=2",
        "sync_ref_model=true",
        "ref_model_sync_steps=2",
        "ref_model_mixup_alpha=0.5",
        "logging_steps=4",  # checkpoints lie between two logs, and in the middle of a rollout
        "save_steps=3",
        "heldout_every=4",
    ),
    "W&B": (
        "max_steps=5",
        "per_device_train_batch_size=16",
        "heldout_every=2",
        "report_to=wandb",
    ),
}
TRAINING = (
    "rollout",
    "gradient accumulation",
    "forward",
    "backward",
    "optimizer",
    "log",
    "held-out",
    "checkpoint",
    "seal",
    "between steps",
)
ONCE = ("reference", "end of training", "record")  # phases that a run goes through once
LATER = ("end of training", "eval", "samples", "record")
WRITE = "large file"
PLANS = {
    FIRST: (WRITE, *TRAINING, "old checkpoint removed", WRITE, *LATER),
    "several updates a rollout, a moving reference": (
        *TRAINING,
        "reference moves",
        "checkpoint",
        WRITE,
    ),
    "W&B": ("log", "checkpoint", "forward", "end of training"),
}


class Answers(NamedTuple):
    """A training on given answers, and where it is killed."""

    family: str
    settings: tuple[str, ...]
    plan: tuple[str, ...]


OF_GIVEN = ("forward", "optimizer", "log", "checkpoint", "seal", WRITE, "end of training", "record")
ANSWERS = {
    "pairs, log-probabilities of the reference computed beforehand": Answers(
        "dpo", ("precompute_ref_log_probs=true",), ("reference", "reference", *OF_GIVEN)
    ),
    "pairs, a moving reference": Answers(
        "dpo", ("sync_ref_model=true", "ref_model_sync_steps=2"), ("reference moves", *OF_GIVEN)
    ),
    "pairs, no reference": Answers("cpo", ("gradient_accumulation_steps=2",), OF_GIVEN),
    "labelled answers, a running mean of rewards": Answers("bco", (), OF_GIVEN),
}
PAPER = """
from core.paper import Paper

PAPER = Paper(
    slug="given", title="", arxiv="", family="{family}", model="", data="", benchmarks=("gsm8k",),
    arms={{"given": {{}}}}, claims=(),
)
"""


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Twelve problems with one answer, the number that the tiny model ends one text of eight with.

    No group of four of a case has both a right and a wrong answer by a chance of 3 in 10,000.
    """
    folder = tmp_path_factory.mktemp("data")
    (folder / "gsm8k").mkdir()
    keys = ("id", "question", "answer", "language")
    problems = [(f"p{i}", f"{i}+{i}=?", "4", "en") for i in range(12)]
    lines = [json.dumps(dict(zip(keys, problem, strict=True))) + "\n" for problem in problems]
    (folder / "gsm8k" / "train.jsonl").write_text("".join(lines))
    return folder


def points(plan, counts, steps, random, *, whole_steps):
    """How to kill: at a call of a phase, early enough that calls are left to die at; in a write.

    A phase of each step is left after some whole steps, so that a checkpoint is there.
    """
    for phase in plan:
        if phase == WRITE:  # smaller than the optimizer's state, larger than the log
            yield {"file_size": random.randrange(20_000, 80_000)}
        else:
            calls = counts[phase] if phase in ONCE else counts[phase] // steps
            before = 0 if phase in ONCE else whole_steps * calls
            yield {"point": (phase, before + random.randint(1, max(1, calls)))}


def result(root):
    """All that must not depend on kills: records, samples, weights, logs without times."""
    (train,) = (root / "runs").glob("train-*")
    kept = [*(root / "runs" / "results").rglob("*"), *(train / "model").rglob("*")]
    content = {str(p.relative_to(root)): p.read_bytes() for p in kept if p.is_file()}
    records = {name: json.loads(text) for name, text in content.items() if name.endswith(".json")}
    for record in records.values():
        for circumstance in ("created", "timings"):
            record.pop(circumstance, None)
    log = [
        {name: value for name, value in row.items() if not any(t in name for t in TIMES)}
        for row in read_log(train / "log.jsonl")
    ]
    return {**content, **records, "log": log}


def check_kills(server, tmp_path, asked, env, plan, random, *, whole_steps=0):
    """Compare a run that is killed at each point of a plan with one that is not; return its log."""

    def run(root, **how):
        root.mkdir(exist_ok=True)
        return server.run(root, *asked, WANDB_DIR=str(root), **env, **how)

    status, said, counts = run(tmp_path / "whole", hooked=True)
    assert status == 0, said
    whole = result(tmp_path / "whole")
    killed = []
    steps = whole["log"][-1]["step"]
    for point in points(plan, counts, steps, random, whole_steps=whole_steps):
        status, said, _ = run(tmp_path / "killed", **point)
        assert status == -(signal.SIGXFSZ if "file_size" in point else signal.SIGKILL), (
            point,
            said,
        )
        killed.append(point)
    status, said, _ = run(tmp_path / "killed")
    assert status == 0, (killed, said)
    assert result(tmp_path / "killed") == whole, killed
    return whole["log"]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_killed_run_ends_as_a_whole_one(case, server, data, tiny_model, tmp_path):
    asked = (*RUN, f"model={tiny_model}", *changed(SMALL, *CASES[case]))
    env = {
        "REPRO_DATA": str(data),
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
    }
    log = check_kills(server, tmp_path, asked, env, PLANS[case], Random(case))
    assert any(row.get("reward_std") for row in log)
    if case == "W&B":
        for name in ("whole", "killed"):
            check_wandb(tmp_path / name, log)


@pytest.mark.long
@pytest.mark.parametrize("case", ANSWERS)
def test_killed_run_on_given_answers_ends_as_a_whole_one(case, server, data, tiny_model, tmp_path):
    paper = tmp_path / "given.py"
    paper.write_text(PAPER.format(family=ANSWERS[case].family))
    pairs = [{"prompt": f"{i}+{i}=?", "chosen": f"{2 * i}", "rejected": f"{i}"} for i in range(40)]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs[1:]))
    asked = (
        "one",
        paper,
        "--arm",
        "given",
        "--seed",
        0,
        f"data={file}",
        f"model={tiny_model}",
        *OF_PAIRS,
    )
    env = {"REPRO_DATA": str(data)}
    plan = ANSWERS[case].plan
    asked = (*asked, *ANSWERS[case].settings)
    log = check_kills(server, tmp_path, asked, env, plan, Random(case), whole_steps=2)
    assert log[-2]["rewards/margins"] > 0.01


ONLINE = {
    "xpo": ("alpha=0.1", "gradient_accumulation_steps=2", "steps_per_generation=4", "save_steps=3"),
    "nash_md": ("beta=0.1", "save_steps=1"),
}
JUDGED = """
from core.paper import Paper
from core.rewards import Judged
from eval.judging.judges import Cyclic

PAPER = Paper(
    slug="online", title="", arxiv="", family="{family}", model="", data="gsm8k",
    rewards=(Judged(Cyclic()),), benchmarks=("gsm8k",), arms={{"online": {{}}}}, claims=(),
)
"""


@pytest.mark.long
@pytest.mark.parametrize("family", ONLINE)
def test_killed_run_of_online_pairs_ends_as_a_whole_one(family, server, data, tiny_model, tmp_path):
    paper = tmp_path / "online.py"
    paper.write_text(JUDGED.format(family=family))
    settings = changed(
        (*SMALL[1:], "max_steps=16", "per_device_train_batch_size=2", "heldout_every=4"),
        *ONLINE[family],
    )
    asked = ("one", paper, "--arm", "online", "--seed", 0, f"model={tiny_model}", *settings)
    plan = ("rollout", "forward", "optimizer", "log", "checkpoint", WRITE, "end of training")
    env = {"REPRO_DATA": str(data)}
    log = check_kills(server, tmp_path, asked, env, plan, Random(family), whole_steps=1)
    assert any(abs(row.get("rewards/margins", 0)) > 1e-3 for row in log)


class Student(NamedTuple):
    """A training by a teacher, and where it is killed.

    Attributes:
        family: The family.
        teacher: A model, by its name or by its path in the folder "{}"; empty for the student.
        settings: Further settings.
        share: A metric whose mean is between 0 and 1 if the settings have an effect; perhaps empty.
        plan: The phases.
    """

    family: str
    teacher: str
    settings: tuple[str, ...]
    share: str
    plan: tuple[str, ...]


OF_TAUGHT = ("rollout", "forward", "optimizer", "log", "checkpoint", WRITE, "end of training")
EVERY = (*TRAINING, "old checkpoint removed", WRITE, *LATER)
STUDENTS = {
    "on rollouts and on the data, half each": Student(
        "gkd", "{}/teacher", (), "on_policy_fraction", OF_TAUGHT
    ),
    "by its moving average": Student(
        "sdft",
        "",
        (
            "num_generations=2",
            "teacher_model_kind=ema",
            "teacher_update_rate=0.3",
            "distillation_topk=9",
        ),
        "",
        ("rollout", "forward", "reference moves", "checkpoint", WRITE, "end of training"),
    ),
    "on a mixture with its teacher": Student(
        "minillm",
        "{}/teacher",
        (
            "teacher_mix_alpha=0.3",
            "lm_coef=0.5",
            "gamma=0.9",
            "num_generations=2",
            "num_iterations=2",
            "gradient_accumulation_steps=2",
            "heldout_every=4",
            "max_steps=32",
        ),
        "sampling/importance_sampling_ratio/min",
        EVERY,
    ),
    "by a teacher in other tokens": Student(
        "gold",
        "pocket-base",
        (
            "use_uld_loss=true",
            "uld_use_hybrid_loss=true",
            "uld_crossentropy_weight=0.5",
            "gradient_accumulation_steps=2",
            "heldout_every=4",
            "max_steps=32",
        ),
        "on_policy_fraction",
        EVERY,
    ),
}
TAUGHT = """
from core.paper import Paper

PAPER = Paper(
    slug="taught", title="", arxiv="", family="{family}", model="", data="", benchmarks=("gsm8k",),
    arms={{"taught": {arm}}}, claims=(),
)
"""


@pytest.mark.long
@pytest.mark.parametrize("case", STUDENTS)
def test_killed_run_of_a_student_ends_as_a_whole_one(case, server, data, tiny_model, tmp_path):
    student = STUDENTS[case]
    other = AutoModelForCausalLM.from_pretrained(tiny_model)
    with torch.no_grad():
        other.get_input_embeddings().weight.mul_(1.5)
    other.save_pretrained(tmp_path / "teacher")
    arm = {"roles": {"teacher": student.teacher.format(tmp_path)}} if student.teacher else {}
    paper, file = tmp_path / "taught.py", tmp_path / "answers.jsonl"
    paper.write_text(TAUGHT.format(family=student.family, arm=arm))
    rows = [{"prompt": f"{i}+{i}=?", "completion": f"{2 * i}", "answer": "4"} for i in range(40)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    short = changed(OF_PAIRS, "max_steps=16", "max_completion_length=12", "heldout_problems=2")
    settings = changed(short, f"data={file}", f"model={tiny_model}", *student.settings)
    asked = ("one", paper, "--arm", "taught", "--seed", 0, *settings)
    env = {"REPRO_DATA": str(data)}
    log = check_kills(server, tmp_path, asked, env, student.plan, Random(case), whole_steps=1)
    if student.share:
        shares = [row[student.share] for row in log if student.share in row]
        assert 0 < sum(shares) / len(shares) < 1


def check_wandb(root, log):
    """One offline run holds each row of the log once, in order."""
    (path,) = [path for path in root.rglob("*.wandb") if JOB not in path.name]
    sent = [row for row in wandb_rows(path) if "train/epoch" in row]
    assert [row["train/global_step"] for row in sent] == [row["step"] for row in log]
    for row, logged in zip(sent, log, strict=True):
        for name in ("reward", "entropy", "kl", "grad_norm"):
            assert row.get(f"train/{name}") == logged.get(name)


def test_kills_hit_every_phase_and_are_thirty_at_least():
    kills = [phase for plan in PLANS.values() for phase in plan]
    assert sum(phase != WRITE for phase in kills) >= 30
    assert set(kills) == {*TRAINING, *LATER, WRITE, "old checkpoint removed", "reference moves"}
