"""The base of every server and cluster here: it runs until the end of a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Running(ABC):
    """Stopped at the end of a `with` block, even after an exception."""

    @abstractmethod
    def stop(self) -> None:
        """End it; idempotent."""

    def __enter__(self) -> Self:
        """Return what runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()
