"""Write the model card of a checkpoint: what any stage can say from its manifest, in Markdown."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from rag.checkpoint import Manifest
from rag.errors import InputError

CARD = "README.md"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """A table in Markdown, the columns of `right` aligned to the right; bars and line breaks in cells are made harmless."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(header), rule, *cells])


def render(title: str, sections: Mapping[str, str]) -> str:
    """A title and its sections; the section without a name comes without a heading."""
    blocks = [f"# {title}", *(f"## {name}\n\n{body}" if name else body for name, body in sections.items() if body)]
    return "\n\n".join(blocks) + "\n"


def write(folder: Path, card: str) -> None:
    """Write the card into a checkpoint's folder. Raises InputError when the disk refuses."""
    try:
        (folder / CARD).write_text(card, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder / CARD}: could not write ({error.strerror})") from error


def base(manifest: Manifest) -> str:
    """The base, its revision and its licence (`model.base_license` of the settings)."""
    name = f"`{manifest.base.id}`" + (f", revision `{manifest.base.revision}`" if manifest.base.revision else "")
    licence = manifest.settings.get("model", {}).get("base_license") or "see the base"
    return f"Base: {name} (fingerprint `{manifest.base.fingerprint}`). Licence of the base: {licence}."


def data(manifest: Manifest) -> str:
    """Files with their hashes, and examples by split and by how they were put together."""
    parts = [table(("file", "SHA-256"), [(f"`{name}`", f"`{digest}`") for name, digest in manifest.data.items()])]
    if manifest.counts:
        rows = [(split, name, str(count)) for split, groups in manifest.counts.items() for name, count in groups.items()]
        parts.append(table(("split", "sets", "number"), rows))
    return "\n\n".join(parts)


def metrics(manifest: Manifest, titles: Mapping[str, str]) -> str:
    """Validation metrics with their intervals, those of `titles` in its order and by its names, then the others."""
    names = [*(name for name in titles if name in manifest.validation), *(name for name in manifest.validation if name not in titles)]
    rows = [(titles.get(name, name), f"{manifest.validation[name]:.4g}", _interval(manifest, name)) for name in names]
    return table(("validation", "value", "95 % interval"), rows)


def _interval(manifest: Manifest, name: str) -> str:
    if name not in manifest.intervals:
        return ""
    low, high = manifest.intervals[name]
    return f"{low:.3f} to {high:.3f}"


def origin(manifest: Manifest) -> str:
    """The command that reproduces the checkpoint, and the commit, machine and versions it ran with."""
    command = f"```\n{manifest.command}\n```\n\n" if manifest.command else ""
    return command + table(("", ""), list(manifest.provenance.items()))
