"""Processes that share work, each on one thread: faster than threads that wait for each other."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


class Workers(ProcessPoolExecutor):
    """So many processes, 0 for one a core; their numerical libraries use one thread each."""

    def __init__(self, count: int) -> None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = "1"  # read by the processes when they load their libraries
        super().__init__(
            max_workers=count or os.cpu_count() or 1,
            mp_context=get_context("spawn"),
            initializer=_alone,
        )


def _alone() -> None:
    import torch

    torch.set_num_threads(1)
