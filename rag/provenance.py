"""What a result needs to be traced: git commit, package versions, machine, and what decides the last bits of what is computed on it."""

import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
"""Flags of x86 processors that a library chooses its arithmetic by; on the last two it computes in bfloat16."""
CHOSEN_BY = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
"""Variables of the environment that make it choose fewer."""
PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "hydra-core", "pydantic", "numpy")


def provenance() -> dict[str, str]:
    """Describe this checkout and machine. A checkout with uncommitted changes is marked `-dirty`; outside git the commit is `unknown`."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    here = {"machine": _machine(), "instructions": _instructions(), "threads": _threads()}
    return {"commit": _commit(), "python": platform.python_version(), **here, **versions}


def command(module: str) -> str:
    """The shell line that runs this process's job again, `module` being the job's."""
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def _commit() -> str:
    # An installed package may lie in the git checkout of some other project, whose commit says nothing here.
    return (
        _git("ls-files", "--error-unmatch", Path(__file__).name) and _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    ) or "unknown"


def _git(*arguments: str) -> str:
    """What git prints for the folder of this file; nothing when it fails, or is not installed."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {_processor()}"


def _processor() -> str:
    return _told_of_the_processor("model name") or platform.processor() or "unknown processor"


def _instructions() -> str:
    flags = _told_of_the_processor("flags").split()
    return " ".join([*(name for name in INSTRUCTIONS if name in flags), *(f"{n}={os.environ[n]}" for n in CHOSEN_BY if n in os.environ)])


def _threads() -> str:
    asked = os.environ.get("OMP_NUM_THREADS")
    return asked or str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def _told_of_the_processor(what: str) -> str:
    """A line of what Linux says of its first processor; empty elsewhere."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.partition(":")[0].strip() == what:
                return line.partition(":")[2].strip()
    return ""
