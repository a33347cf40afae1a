"""A sweep on SLURM: the real launcher, with a scheduler of one machine in place of the cluster's."""

import json
import os
import subprocess
import sys
from pathlib import Path

from rag.jsonl import write_records
from rag.records import Condition, Document, Example, RetrievalState

ROOT = Path(__file__).parents[2]
SBATCH = """#!/bin/sh
# Keeps the batch script, and runs the tasks of its array one after the other.
cp "$1" "$FAKE_SLURM/script.sh"
echo "Submitted batch job 7"
{ for task in 0 1; do
    SLURM_JOB_ID=10$task SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$task SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 \\
    SLURM_JOB_NUM_NODES=1 sh "$1" > "$FAKE_SLURM/$task.log" 2>&1
  done; } > /dev/null 2>&1 &
"""
SRUN = """#!/bin/sh
until [ "${1##*/python}" != "$1" ]; do shift; done
exec "$@"
"""
SACCT = """#!/bin/sh
printf 'JobID|State|NodeList\\n7_0|RUNNING|one\\n7_1|RUNNING|one\\n'
"""


def test_a_sweep_becomes_an_array_of_jobs_with_our_settings_and_a_folder_for_each(tmp_path: Path) -> None:
    tools, slurm = tmp_path / "bin", tmp_path / "slurm"
    tools.mkdir()
    slurm.mkdir()
    for name, text in {"sbatch": SBATCH, "srun": SRUN, "sacct": SACCT}.items():
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)
    example = Example(
        id="e",
        question_id="q",
        question="Where?",
        documents=(Document(id="d", text="Here."),),
        state=RetrievalState.UNANSWERABLE,
        condition=Condition.UNANSWERABLE,
    )
    write_records(tmp_path / "a.jsonl", [example])
    environment = {"PYTHONPATH": str(ROOT), "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path), "FAKE_SLURM": str(slurm)}
    overrides = ["system=always_abstain", "dataset=jsonl", "dataset.path=a.jsonl", "show=0", "tracking=none"]
    launcher = ["hydra/launcher=slurm", "hydra.launcher.partition=gpu", "hydra.launcher.array_parallelism=1"]
    command = [sys.executable, "-m", "eval.pipeline", "-m", *overrides, *launcher, "resamples=10,20", "out=runs/resamples/${resamples}"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr + "".join(path.read_text(encoding="utf-8") for path in slurm.glob("*.log"))

    script = (slurm / "script.sh").read_text(encoding="utf-8")
    asked = {line.removeprefix("#SBATCH --") for line in script.splitlines() if line.startswith("#SBATCH")}
    wanted = {"array=0-1%1", "partition=gpu", "gpus-per-node=1", "cpus-per-task=8", "mem=64GB", "time=1440", "signal=USR2@120"}
    assert wanted | {"job-name=eval_pipeline", "nodes=1", "ntasks-per-node=1"} <= asked
    for resamples in (10, 20):
        folder = tmp_path / "runs" / "resamples" / str(resamples)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        assert (report["report"]["n"], report["report"]["resamples"]) == (1, resamples)
        # The command of one job, not that of the sweep or of the process that SLURM began.
        assert report["provenance"]["command"].startswith("python -m eval.pipeline system=always_abstain dataset=jsonl")
        assert f"resamples={resamples}" in report["provenance"]["command"]
        assert list(json.loads((folder / "run.json").read_text(encoding="utf-8"))["inputs"]) == ["a.jsonl"]
