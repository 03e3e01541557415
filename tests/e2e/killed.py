"""A server that imports everything once and forks the command line, to be killed where it says.

A point is a phase and a number: the child sends itself SIGKILL at the n-th Python or C call whose
innermost phase is that one. A phase is a function of ours or of a library, on the stack by name.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from importlib import import_module
from itertools import count
from pathlib import Path

PHASES = {
    "RolloutTrainer.training_step": "gradient accumulation",
    "OnPolicyTrainer.rollout": "rollout",
    "DistillingTrainer.rollout": "rollout",
    "RolloutTrainer.cut_rollout": "rollout",
    "GRPOTrainer.loss": "forward",
    "MiniLLMTrainer.loss": "forward",
    "SDPOTrainer.loss": "forward",
    "DistillingTrainer.loss": "forward",
    "GOLDTrainer.loss": "forward",
    "OnlineTrainer.loss": "forward",
    "PreferenceTrainer.compute_loss": "forward",
    "UnpairedTrainer.compute_loss": "forward",
    "ReferenceTrainer.with_reference": "reference",
    "Accelerator.backward": "backward",
    "AcceleratedOptimizer.step": "optimizer",
    "SyncReferenceCallback.on_step_end": "reference moves",
    "HeldOutCallback.measured": "held-out",
    "SamplingTrainer.log": "log",
    "BaseTrainer.log": "log",
    "Trainer._save_checkpoint": "checkpoint",
    "rotate_checkpoints": "old checkpoint removed",
    "SealCallback.on_save": "seal",
    "last_checkpoint": "resume",
    "Trainer._load_optimizer_and_scheduler": "resume",
    "BaseTrainer._load_optimizer_and_scheduler": "resume",
    "JsonlCallback.on_train_begin": "resume",
    "Trainer.train": "between steps",
    "train_model": "end of training",
    "evaluate": "eval",
    "write_samples": "samples",
    "write_run_samples": "samples",
    "write_record": "record",
    "render_outcome": "report",
}
IMPORTS = (
    "core.cli.main",
    "core.run.order",
    "core.pages.render",
    "core.stages.training",
    "core.preference.bco",
    "core.preference.dpo",
    "core.preference.nash_md",
    "core.preference.xpo",
    "core.trainers.grpo",
    "eval.stats.comparisons",
    "transformers.models.llama.modeling_llama",
    "wandb",
)


class Calls:
    """Counts the calls of each phase, and ends this process at the one it was told."""

    def __init__(self, point):
        self.phase, self.number = point or (None, 0)
        self.counts = Counter()
        self.stack = []

    def __call__(self, frame, event, _):
        if event == "call":
            name = PHASES.get(frame.f_code.co_qualname)
            if name is not None:
                self.stack.append((name, frame))
        elif event == "return":
            if self.stack and self.stack[-1][1] is frame:
                self.stack.pop()
            return
        elif event != "c_call":
            return
        if self.stack:
            phase = self.stack[-1][0]
            self.counts[phase] += 1
            if phase == self.phase and self.counts[phase] == self.number:
                os.kill(os.getpid(), signal.SIGKILL)


def run(request):
    """The command line in this process, a fork of the server."""
    os.environ.update(request["env"])
    log = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if request["file_size"]:  # a write beyond it kills the process in the middle of that write
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"],) * 2)
    calls = Calls(request["point"]) if request["hooked"] else None
    sys.argv = ["repro", *request["arguments"]]
    from core.cli.main import app

    sys.setprofile(calls)
    try:
        app()
    except SystemExit as end:
        sys.setprofile(None)
        if calls is not None:
            Path(request["said"]).with_suffix(".json").write_text(json.dumps(calls.counts))
        os._exit(int(end.code or 0))


def run_to_fsync(number, arguments, environment):
    """Run the command line in a fork, which kills itself when it secures a file that often."""
    secured, real = count(1), os.fsync

    def fsync(file):
        if next(secured) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        real(file)

    os.fsync = fsync
    os.environ.update(environment)
    sys.argv = ["repro", *arguments]
    from core.cli.main import app

    app()


def serve():
    """One request a line on standard input, one exit status (negative: the signal) a line back."""
    for name in IMPORTS:
        import_module(name)
    suites = import_module("eval.pocket.suites")
    for suite in suites.SUITES:  # seconds, and kept
        suites.drafts(suite, "test")
    gc.collect()
    gc.freeze()  # what is here stays, and a fork shares it
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=answers, flush=True)
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, file=answers, flush=True)


class Server:
    """The server's other end."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )
        self.process.stdout.readline()

    def run(self, root, *arguments, point=None, hooked=False, file_size=0, **env):
        """Exit status and the lines said; the counts of calls where `hooked` and not killed."""
        said = root.parent / f"{root.name}.said"
        request = {
            "arguments": [str(a) for a in arguments],
            "env": {"REPRO_ROOT": str(root), **env},
            "said": str(said),
            "point": point,
            "hooked": hooked or point is not None,
            "file_size": file_size,
        }
        print(json.dumps(request), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        counts = said.with_suffix(".json")
        found = json.loads(counts.read_text()) if hooked and counts.exists() else {}
        return status, said.read_text(), found

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    serve()
