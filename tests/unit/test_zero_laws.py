"""Bytes of ZeRO's stages: the paper's table beside ours, a worked example, and laws that notice."""

import inspect

import pytest
import torch
from law_mutants import holds, laws_of, survivors

from core.settings import memory, partitions
from core.settings.memory import states
from core.settings.partitions import STAGES, Processes
from papers.zero import PAPER

LAUNCHES = {"data parallelism": "ddp", "P_os": "zero1", "P_os+g": "zero2", "P_os+g+p": "zero3"}
SIZES = {"7.5B": 7.5e9, "128B": 128e9, "1T": 1e12}
TABLE = {  # GB of a device for 7.5 billion parameters
    1: (120.0, 120.0, 120.0),
    4: (52.5, 41.25, 30.0),
    16: (35.625, 21.5625, 7.5),
    64: (31.40625, 16.640625, 1.875),
    256: (30.351562, 15.410156, 0.46875),
    1024: (30.087891, 15.102539, 0.117188),
}
SMALL = {  # MiB of a device for 500,000 parameters
    1: (7.629395, 7.629395, 7.629395),
    2: (4.768372, 4.291534, 3.814697),
    4: (3.33786, 2.622604, 1.907349),
}
EXAMPLES = [(7_500_000_000, 1e9, *row) for row in TABLE.items()]
EXAMPLES += [(500_000, 2**20, *row) for row in SMALL.items()]


def planned(launch, parameters, processes):
    return sum(states(launch, int(parameters), processes, bf16=True))


@pytest.mark.parametrize(("parameters", "unit", "processes", "sizes"), EXAMPLES)
def test_bytes_of_the_stages(parameters, unit, processes, sizes):
    found = [planned(f"zero{stage}", parameters, processes) / unit for stage in (1, 2, 3)]
    assert found == pytest.approx(sizes, rel=1e-5)


def test_table_1_is_ours_to_its_last_digit():
    """Its numbers of 1T parameters are cut, the others rounded."""
    cells = [cell for cell in PAPER.reported if cell.passage == "table 1"]
    assert len(cells) == 32
    for cell in cells:
        gpus = cell.system.split()[0]
        processes = 1 if gpus == "any" else int(gpus)
        found = planned(LAUNCHES[cell.benchmark], SIZES[cell.size], processes) / 1e9
        digits = len(f"{cell.value:g}".partition(".")[2])
        last = 10.0**-digits
        assert abs(found - cell.value) <= (last if cell.size == "1T" else last / 2 + 1e-9)


def test_adam_of_eight_gpus_is_that_of_the_tutorial():
    (stated,) = (cell.value for cell in PAPER.reported if cell.passage == "DeepSpeed's tutorial")
    assert states("zero1", 1_500_000_000, 8, bf16=True)[2] / 1e9 == stated


def test_every_law_holds():
    assert all(map(holds, laws_of("zero")))


def test_they_notice_changes_of_the_formulas():
    source, start = inspect.getsourcelines(memory.states)
    lines = range(start, start + len(source))
    assert survivors(laws_of("zero"), "core/settings/memory.py", lines) == []


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_process_that_updates_another_slice_is_noticed(stage, monkeypatch):
    """Each gets the mean gradient of its neighbour's slice."""
    reduce_scatter = Processes.reduce_scatter

    def shifted(self, tensors):
        parts = reduce_scatter(self, tensors)
        return (*parts[1:], parts[0]) if self.stage == stage else parts

    monkeypatch.setattr(Processes, "reduce_scatter", shifted)
    assert max(partitions.update_errors()) > 1e-3


def test_a_stage_more_or_less_is_noticed(monkeypatch):
    for changed in (STAGES | {"zero2": 1}, STAGES | {"zero1": 0}, STAGES | {"zero2": 3}):
        monkeypatch.setattr(partitions, "STAGES", changed)
        failing = [law.slug for law in laws_of("zero") if not holds(law)]
        assert "zero-formula-matches-alloc" in failing


def test_the_optimiser_holds_what_the_table_calls_k():
    """Twelve bytes of a parameter: the weights and two moments in 32 bits."""
    (process,) = partitions.trained(1, 1, torch.bfloat16, torch.float32).all
    assert process.held_bytes == 16 * len(partitions.start_weights())
    assert process.held_bytes - process.weights.nbytes - process.gradients.nbytes == (
        12 * len(partitions.start_weights())
    )
