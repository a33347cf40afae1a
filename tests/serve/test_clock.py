"""The clock waits for the device, and does not wake one up."""

from types import SimpleNamespace

import pytest
import torch

from serve.clock import now


@pytest.mark.parametrize(("kind", "initialised", "waits"), [("cuda", True, 1), ("cuda", False, 0), ("mps", False, 1), (None, False, 0)])
def test_it_waits_for_an_accelerator_that_is_in_use(
    kind: str | None, initialised: bool, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    device = None if kind is None else SimpleNamespace(type=kind)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: device)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda: waited.append(1))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialised)
    first = now()
    assert len(waited) == waits
    assert now() >= first
