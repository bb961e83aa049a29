"""What a transformation and a predicate are (KIP-66, KIP-585).

A plugin is a class with a `config_def`, made without arguments and configured once per task. The generic names of
Connect's classes end in `$Key` or `$Value`; here they are nested classes, `Cast.Key` and `Cast.Value`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, runtime_checkable

from airflow_connect.api.config import ConfigDef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import ConnectRecord

R = TypeVar("R", bound="ConnectRecord")


class Transformation(ABC):
    """Changes, renames or drops records one by one.

    Attributes:
        config_def: keys below `transforms.<alias>.`, without that prefix; `type`, `predicate` and `negate` are the
            framework's.
        renames_topics: whether `apply` may change the topic. Where a class says False, what a dead run has left in a
            store is looked for below the topics' own names only.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef()
    renames_topics: ClassVar[bool] = True

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the keys of `config_def`, as text without prefix.

        Raises:
            ConfigError: a key is wrong; `config_path` is its name without prefix.
        """
        self.config_def.parse(config)

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The transformed record, None to drop it. Never changes the record that it was given: `record.changed(...)`.

        Raises:
            DataError: the record cannot be transformed; `errors.tolerance` decides what follows.
        """

    def close(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release what `configure` opened; idempotent."""


class Predicate(ABC):
    """Says which records a transformation applies to."""

    config_def: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the keys of `config_def`, as text without prefix.

        Raises:
            ConfigError: a key is wrong.
        """
        self.config_def.parse(config)

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool:
        """Whether the transformation applies to the record."""

    def close(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release what `configure` opened; idempotent."""


@runtime_checkable
class ColumnarTransformation(Protocol):
    """What a transformation adds to take part in the columnar path. Optional."""

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The transformed batch, with fewer records where some are dropped; None when the batch is not plain.

        It never raises DataError: None sends the records to `apply`, which does.
        """


@runtime_checkable
class ColumnarPredicate(Protocol):
    """What a predicate adds to take part in the columnar path. Optional."""

    def test_columns(self, batch: RecordColumns) -> NDArray[np.bool_] | bool | None:
        """Per record or for all of them whether the transformation applies; None when the batch is not plain."""
