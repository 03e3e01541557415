"""Diagnosis of this machine, and of the scales that can run on it."""

import os
import shutil
from pathlib import Path

import torch

from core.models.folders import RESTORE
from core.records.places import root
from core.records.record import versions
from core.stages.sources import model_folder
from eval.sandbox import backends


def diagnosis() -> dict[str, str]:
    """Return processors, memory, disk, versions, data and the scales that can run, as texts."""
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    data = os.environ.get("REPRO_DATA")
    pocket = model_folder("pocket-instruct")
    return {
        "CPUs": str(len(os.sched_getaffinity(0))),
        "memory": f"{pages * size / 2**30:.1f} GiB",
        "free disk": f"{shutil.disk_usage(root()).free / 2**30:.1f} GiB",
        "GPUs": ", ".join(gpus) or "none",
        **versions(),
        "REPRO_DATA": f"{data} ({'there' if Path(data).is_dir() else 'missing'})" if data else "-",
        **{f"sandbox {name}": state for name, state in backends().items()},
        "--at cpu": "yes" if pocket else f"no pocket models: {RESTORE}",
        "--at gpu": "yes, with the hub or local models" if gpus else "no: no GPU",
        "--at paper": "a cluster is needed, see the paper's settings" if gpus else "no: no GPU",
    }
