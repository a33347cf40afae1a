"""The most memory that a piece of work needs above what is held before it."""

from pathlib import Path

import torch

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


class PeakMemory:
    """Measures the work between `start` and `stop`.

    On CUDA, what torch's allocator had at most, above what it had before. On Linux without CUDA, the high-water mark of the process's
    resident memory (`VmHWM`, set back at the start), above the resident memory before; memory that the process had freed and kept is used
    again without being seen. Elsewhere it is not measured.
    """

    def __init__(self) -> None:
        """Choose how to measure on this machine."""
        # A process that computes on the CPU of a machine with a GPU has not started CUDA.
        self.how = "CUDA" if torch.cuda.is_initialized() else "resident" if _can_reset() else "not measured"
        self._before = 0

    def start(self) -> None:
        """Begin."""
        if self.how == "CUDA":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()
        elif self.how == "resident":
            _reset()
            self._before = _kilobytes("VmRSS")

    def stop(self) -> int | None:
        """Bytes; none where it is not measured."""
        if self.how == "CUDA":
            torch.cuda.synchronize()
            return max(0, torch.cuda.max_memory_allocated() - self._before)
        if self.how == "resident":
            return 1024 * max(0, _kilobytes("VmHWM") - self._before)
        return None


TITLES = {
    "CUDA": "torch.cuda.max_memory_allocated after a reset, above what was allocated before",
    "resident": "the process's highest resident memory (VmHWM after a reset), above its resident memory before",
    "not measured": "not measured: neither CUDA nor Linux",
}


def _can_reset() -> bool:
    try:
        _reset()
    except OSError:
        return False
    return True


def _reset() -> None:
    RESET.write_text("5")  # proc(5): resets the peak resident set size


def _kilobytes(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])
