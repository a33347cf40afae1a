"""Model cards from any manifest."""

from pathlib import Path

import pytest

from rag import card
from rag.checkpoint import Base, Manifest
from rag.errors import InputError

MANIFEST = Manifest(
    stage="sage",
    base=Base(id="org/model", revision="abc", fingerprint="f1"),
    settings={},
    validation={"loss": 0.25, "sets": 12.0, "macro_f1": 2 / 3},
    intervals={"macro_f1": (0.5, 0.75)},
    data={"a.jsonl": "12ab"},
    counts={"train": {"golds": 3}},
    command="python -m sage.train",
    provenance={"commit": "c0ffee"},
)


def test_a_table_survives_what_is_in_its_cells() -> None:
    assert card.table(("a", "b"), [("x|y", "two\nlines")]) == "| a | b |\n| --- | --- |\n| x\\|y | two lines |"


def test_sections_without_a_body_are_left_out() -> None:
    assert card.render("T", {"": "first", "Empty": "", "Last": "end"}) == "# T\n\nfirst\n\n## Last\n\nend\n"


def test_metrics_come_in_the_order_of_their_titles_and_none_is_lost() -> None:
    assert card.metrics(MANIFEST, {"macro_f1": "Macro-F1", "tpr": "recall"}).splitlines()[2:] == [
        "| Macro-F1 | 0.6667 | 0.500 to 0.750 |",
        "| loss | 0.25 |  |",
        "| sets | 12 |  |",
    ]


def test_base_data_and_origin_name_what_is_needed_to_make_it_again() -> None:
    assert card.base(MANIFEST) == "Base: `org/model`, revision `abc` (fingerprint `f1`). Licence of the base: see the base."
    licensed = MANIFEST.model_copy(update={"settings": {"model": {"base_license": "MIT"}}})
    assert card.base(licensed).endswith("Licence of the base: MIT.")
    assert "| `a.jsonl` | `12ab` |" in card.data(MANIFEST) and "| train | golds | 3 |" in card.data(MANIFEST)
    assert "```\npython -m sage.train\n```" in card.origin(MANIFEST) and "| commit | c0ffee |" in card.origin(MANIFEST)


def test_a_card_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    card.write(tmp_path, "# T\n")
    assert (tmp_path / card.CARD).read_text(encoding="utf-8") == "# T\n"
    with pytest.raises(InputError, match="could not write"):
        card.write(tmp_path / "none", "# T\n")
