"""What tasks of connectors need that run converters and transformations themselves (`Connector.runs_chain`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from airflow_connect.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ForeignException(NamedTuple):
    """An exception that is not Python's.

    Attributes:
        name: of its class.
        message: of it; "" if it has none.
        stacktrace: of it and of its causes.
    """

    name: str
    message: str
    stacktrace: str


class RecordFailedError(DataError):
    """A record failed in a stage that the connector's plugin runs itself (`Connector.runs_chain`).

    Attributes:
        stage, stage_class: Connect's name of the stage, and the class that failed.
        exception: what it has thrown, for the headers of a dead letter.
    """

    def __init__(self, message: str, code: str, stage: str, stage_class: str, exception: ForeignException) -> None:
        """`message`: a complete sentence, without the place of the record."""
        super().__init__(message, code=code)
        self.stage, self.stage_class, self.exception = stage, stage_class, exception

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from all parts."""
        return type(self), (self.message, self.code, self.stage, self.stage_class, self.exception)


@runtime_checkable
class ChainSinkTask(Protocol):
    """Methods of a columnar sink task that runs converters and transformations itself (`Connector.runs_chain`)."""

    def take_dropped(self) -> NDArray[np.int64]:
        """Ascending offsets of the records of the last `put_columns` that a transformation has dropped."""

    def report_failed(self) -> None:
        """Report records that failed to the errant record reporter. Called after `put_columns`, once they count."""
