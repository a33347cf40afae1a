"""The wheel works on its own: from any folder, with its configs inside."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUN_ALL = """
import runpy, sys
import conf
assert conf.__file__.startswith(sys.argv[1]), conf.__file__
with_profile = ("sieve.train", "sage.train", "eval.pipeline", "eval.profile")
without = ("data_gen.build", "data_gen.audit", "sieve.audit", "sieve.operating", "sieve.embed", "sieve.compare", "sieve.transfer")
without += ("sage.merge", "eval.table", "eval.compare", "eval.html")
without += ("eval.retrieval", "data_gen.corpus")
without += ("eval.certify", "eval.drift")
for module in (*with_profile, *without):
    for profile in ("paper", "local") if module in with_profile else (None,):
        sys.argv = [module, "--cfg", "job"] + ([f"profile={profile}"] if profile else [])
        print(f"# {module} {profile}", flush=True)
        runpy.run_module(module, run_name="__main__")
"""


def test_the_jobs_of_an_installed_wheel_compose_their_configs_in_an_unrelated_folder(tmp_path: Path) -> None:
    """Pitfall D2."""
    wheels, site, elsewhere = tmp_path / "wheels", tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    # A build writes into its source folder, which must not be the checkout.
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "runs", "data", "checkpoints", "build", "*.egg-info", "tests"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, source], check=True)
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", site, *wheels.glob("*.whl")], check=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, str(site)],
        cwd=elsewhere,
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "base: meta-llama/Meta-Llama-3-8B-Instruct" in done.stdout
    assert "base: allenai/longformer-base-4096" in done.stdout
    assert not any(elsewhere.iterdir())
