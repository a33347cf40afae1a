"""What a result needs to be traced: git commit, package versions and machine."""

import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "hydra-core", "pydantic", "numpy")


def provenance() -> dict[str, str]:
    """Describe this checkout and machine. A checkout with uncommitted changes is marked `-dirty`; outside git the commit is `unknown`."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"commit": _commit(), "python": platform.python_version(), "machine": _machine(), **versions}


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
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
