"""Read the clock when the work that was asked of the device is done, so that it is charged to the stage that asked for it."""

import time
from collections.abc import Callable

import torch

Clock = Callable[[], float]
"""Gives seconds; only differences mean something."""


def now() -> float:
    """Seconds, once the accelerator of this process, where it uses one, has nothing left to do."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    # Waiting for CUDA would start it in a process that computes on the CPU.
    if accelerator is not None and (accelerator.type != "cuda" or torch.cuda.is_initialized()):
        torch.accelerator.synchronize()
    return time.perf_counter()
