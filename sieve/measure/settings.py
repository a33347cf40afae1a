"""What the jobs that measure Sieves share: their settings, and a figure as it is written."""

from typing import Self

from pydantic import Field

from rag.records import Record
from rag.settings import Files, Settings
from sieve.measure.intervals import Figure


class MeasureSettings(Settings):
    """Which examples a job measures on, and how."""

    data: Files
    """Examples with known states."""
    resamples: int = Field(ge=1)
    """Of the bootstrap, by question."""
    batch_size: int = Field(ge=1)
    """Sets scored, and written to disk, at a time."""
    device: str = "auto"


class Measure(Record):
    """A figure from 0 to 1 with its interval by question; none where it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    """Examples that count."""

    @classmethod
    def of(cls, figure: Figure, n: int) -> Self:
        """Of a figure of `n` examples; one that is not a number is not defined."""
        value, low, high = (None, None, None) if figure.value is None or figure.value != figure.value else figure
        return cls(value=value, low=low, high=high, n=n)

    @property
    def figure(self) -> Figure:
        """The figure without its number of examples."""
        return Figure(self.value, self.low, self.high)

    @property
    def cell(self) -> str:
        """As text in a table; blank where it is not defined."""
        if self.value is None or self.low is None or self.high is None:
            return ""
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"
