"""Looking into systems of any class."""

import torch

from eval.cost.memory import PeakMemory
from eval.cost.parts import forget, models


class Remembers:
    def __init__(self, **attributes: object) -> None:
        self.forgotten = 0
        self.__dict__.update(attributes)

    def forget(self) -> None:
        self.forgotten += 1


def test_models_are_named_by_the_way_to_them_and_found_once() -> None:
    first, second = torch.nn.Sequential(torch.nn.Linear(2, 3)), torch.nn.Linear(4, 5)
    parts = {"sieve": Remembers(_model=first), "sage": Remembers(model=second, again=first)}
    system = Remembers(**parts, steps=[Remembers(model=second)])
    assert models(system) == {"sieve": first, "sage": second}
    assert models(Remembers(model=first)) == {"model": first}
    assert models(object()) == {}


def test_every_part_forgets_once_however_it_is_held() -> None:
    inner, listed, named = Remembers(), Remembers(), Remembers()
    system = Remembers(_inner=inner, again=inner, chain=[listed], by_name={"x": named})
    system.myself = system
    forget(system)
    assert [part.forgotten for part in (system, inner, listed, named)] == [1, 1, 1, 1]


def test_peak_memory_sees_a_tensor_that_is_gone_at_the_end() -> None:
    memory = PeakMemory()
    memory.start()
    torch.ones(64 * 2**20 // 4).sum()
    taken = memory.stop()
    if memory.how == "not measured":
        assert taken is None
    else:
        assert taken is not None and taken >= 48 * 2**20
    memory.start()
    again = memory.stop()
    assert again is None or again < 32 * 2**20
