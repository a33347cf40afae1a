"""What the README shows exists: its tree, its commands and its links."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def tree_paths() -> list[str]:
    """Paths of the README's tree: two spaces of indent for each level, a comment after two or more spaces."""
    block = next(part for part in README.split("```") if part.startswith("\nrag/"))
    paths: list[str] = []
    folders: list[str] = []
    for line in block.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        folders = folders[:depth]
        paths.append("".join(folders) + name)
        if name.endswith("/"):
            folders.append(name)
    return paths


def tracked() -> set[str]:
    """Files under version control, or all files of a source archive."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False)
    return set(listed.stdout.splitlines()) or {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")}


@pytest.mark.parametrize("path", tree_paths())
def test_each_line_of_the_tree_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_tree_names_every_module_of_the_packages() -> None:
    packages = ("rag/", "sieve/", "sage/", "data_gen/", "serve/", "eval/")
    modules = {path for path in tracked() if path.startswith(packages) and path.endswith(".py") and not path.endswith("__init__.py")}
    assert len(modules) > 30
    assert modules <= set(tree_paths())


def test_each_make_target_and_module_it_runs_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^ {4}|`)make ([a-z-]+\d*)", README, re.MULTILINE))
    assert {"demo", "test", "train-local", "table15"} <= targets
    # A table's number is the pattern's stem.
    assert all(re.search(rf"^{re.sub(r'[0-9]+$', '%', target)}:", makefile, re.MULTILINE) for target in targets)
    modules = set(re.findall(r"python -m ([a-z_.]+)", README + makefile)) - {"pip", "venv", "pytest", "ruff", "mypy"}
    assert len(modules) >= 4
    assert all((ROOT / f"{module.replace('.', '/')}.py").is_file() for module in modules)


def test_each_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links if not link.startswith("http"))
