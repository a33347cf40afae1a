"""Which of several processes this is, as `torchrun` and `accelerate launch` tell each of them; one process where there is no launcher."""

import os


def rank() -> int:
    """Number of this process among all of the run, from 0; process 0 alone writes to the run's folder."""
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    """Number of this process among those on this machine, from 0; also that of its accelerator."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def world_size() -> int:
    """Processes of the run, over all machines."""
    return int(os.environ.get("WORLD_SIZE", "1"))
