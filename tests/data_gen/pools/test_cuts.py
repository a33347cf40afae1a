"""Cuts of a text that keep what they are around."""

from random import Random

import pytest

from data_gen.pools.cuts import cuts, window


@pytest.mark.parametrize("words", [1, 3, 5, 20])
def test_a_window_holds_what_it_is_around(words: int) -> None:
    text = "One two three four Ada Lundberg five six. Seven eight ..."
    pieces = {window(Random(i), text, words, "Ada Lundberg") for i in range(20)}
    assert all("Ada Lundberg" in cut for cut in pieces)
    assert all(len(cut.removeprefix("... ").removesuffix(" ...").split()) <= max(words, 2) for cut in pieces) or words == 20
    assert (pieces == {text}) == (words == 20)
    assert not any("... ..." in cut for cut in pieces)


def test_a_passage_has_shorter_cuts_with_the_answer() -> None:
    text = " ".join(f"w{i}" for i in range(30)) + " Ada Lundberg " + " ".join(f"w{i}" for i in range(30, 60))
    whole, *shorter = cuts(Random(0), text, "Ada Lundberg", 40, shorter=True)
    assert len(whole.removeprefix("... ").removesuffix(" ...").split()) == 40
    assert len(shorter) == 2 and all("Ada Lundberg" in cut and len(cut.split()) < 40 for cut in shorter)
    assert cuts(Random(0), text, "Ada Lundberg", None, shorter=False) == [text]
