"""ZeRO spreads optimiser state, gradients and weights over the processes of data parallelism.

Where the sources disagree, and what is not the paper's here:

- Bytes of a parameter are those of mixed precision with Adam: 2 + 2 and K = 12. PyTorch's FSDP2
  keeps weights and gradients in 32 bits, with other constants: see `core.settings.memory`.
- Printed numbers are rounded, those of 1T parameters cut. The cell of stage 3 on 1,024 GPUs was not
  legible.
- DeepSpeed's estimators count otherwise: 32-bit gradients, and the largest layer of stage 3 whole.
- The data is not named; data and model here are others.
- The laws are of simulated processes. Two processes of DeepSpeed hold the planned bytes up to
  padding, and train as one process does, in a test of each launch.
"""

from core.claims import Claim, law, least
from core.paper import Column, Paper, cite, printed

PARTS = "core.settings.partitions"
DDP, ZERO1, ZERO2, ZERO3 = (
    law(f"{PARTS}:parameter_bytes", launch) for launch in ("ddp", "zero1", "zero2", "zero3")
)
MOVED = {launch: law(f"{PARTS}:moved_numbers", launch) for launch in ("zero1", "zero2", "zero3")}
MOVED_DDP = law(f"{PARTS}:moved_numbers", "ddp")
STAGES = ("P_os", "P_os+g", "P_os+g+p")
TABLE_1 = {  # GB of data parallelism and of the stages
    ("any number of GPUs", "7.5B"): (120.0, None, None, None),
    ("4 GPUs", "7.5B"): (None, 52.5, 41.3, 30.0),
    ("16 GPUs", "7.5B"): (None, 35.6, 21.6, 7.5),
    ("64 GPUs", "7.5B"): (None, 31.4, 16.6, 1.88),
    ("256 GPUs", "7.5B"): (None, 30.4, 15.4, 0.47),
    ("1024 GPUs", "7.5B"): (None, 30.1, 15.1, 0.12),
    ("any number of GPUs", "128B"): (2048.0, None, None, None),
    ("4 GPUs", "128B"): (None, 896.0, 704.0, 512.0),
    ("16 GPUs", "128B"): (None, 608.0, 368.0, 128.0),
    ("64 GPUs", "128B"): (None, 536.0, 284.0, 32.0),
    ("any number of GPUs", "1T"): (16_000.0, None, None, None),
    ("64 GPUs", "1T"): (None, 4187.0, 2218.0, 250.0),
    ("1024 GPUs", "1T"): (None, 4011.0, 2013.0, None),
}

PAPER = Paper(
    slug="zero",
    title="ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    arxiv="1910.02054",
    family="sft",
    config=(cite("TRL's paper index", launch="zero3", processes=2),),
    model="openai-community/gpt2-xl",
    data="numina-math-cot",
    not_run=(
        "its models of up to 170 billion parameters and their data are not public; other papers "
        "take --launch zero1, zero2 or zero3"
    ),
    profiles={scale: {"launch": None, "processes": 1} for scale in ("cpu", "gpu")},
    reported=(
        *printed("table 1", ("data parallelism", *STAGES), "model states", TABLE_1, unit="GB"),
        *printed(
            "s7",
            STAGES,
            "communication",
            {"of data parallelism": (1.0, 1.0, 1.5)},
            unit="times",
        ),
        *printed(
            "DeepSpeed's tutorial",
            (Column(benchmark="P_os", title="Adam's state"),),
            "8 GPUs",
            {("8 GPUs", "1.5B"): (2.25,)},
            unit="GB",
        ),
        *printed(
            "DeepSpeed's estimators",
            STAGES[1:],
            "model states",
            {("8 GPUs", "2851M"): (15.93, 6.1)},
            unit="GB",
        ),
    ),
    claims=(
        Claim(
            "zero-stage-order",
            "Memory falls with the stage on several processes, and is the same on one.",
            least(DDP - ZERO1, ZERO1 - ZERO2, ZERO2 - ZERO3, 0.5 - law(f"{PARTS}:alone_spread"))
            > 0,
        ),
        Claim(
            "zero-formula-matches-alloc",
            "The tensors of each simulated process have the bytes of the formula.",
            law(f"{PARTS}:allocation_errors") == 0,
        ),
        Claim(
            "zero-limits",
            "On many processes a parameter takes 4 bytes in stage 1, 2 in stage 2, 0 in stage 3.",
            law(f"{PARTS}:bytes_of_many").about(law(f"{PARTS}:limits"), within=0.02),
        ),
        Claim(
            "zero-same-update",
            "Partitioned Adam gives the weights of Adam.",
            law(f"{PARTS}:update_errors").about(0.0, within=1e-12),
        ),
        Claim(
            "zero-comm",
            "Stage 3 sends 1.5 times the numbers of data parallelism; stages 1 and 2 as many.",
            least(
                1e-9 - abs(MOVED["zero1"] / MOVED_DDP - 1.0),
                1e-9 - abs(MOVED["zero2"] / MOVED_DDP - 1.0),
                1e-9 - abs(MOVED["zero3"] / MOVED_DDP - 1.5),
            )
            > 0,
        ),
    ),
)
