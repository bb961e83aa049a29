"""The contracts of transformations and predicates (KIP-66, KIP-585).

A plugin is a class with a `config_def`, created without arguments and configured once per task. The generic names of
Connect's classes end in `$Key` or `$Value`; here they are nested classes, `Cast.Key` and `Cast.Value`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, runtime_checkable

from airflow_connect.api.config.config_def import ConfigDef

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
        renames_topics: whether `apply` may change the topic. If False, a sweep looks for the leftovers of a
            dead run only under the topics' own names.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef()
    renames_topics: ClassVar[bool] = True

    def configure(self, config: Mapping[str, str]) -> None:
        """Set the keys of `config_def`, as text without prefix.

        Raises:
            ConfigError: a key is wrong; `config_path` is its name without prefix.
        """
        self.config_def.parse(config)

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The transformed record, or None to drop it. Must not modify the given record: use `record.changed(...)`.

        Raises:
            DataError: the record cannot be transformed; `errors.tolerance` decides what happens.
        """

    def close(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release what `configure` opened; idempotent."""


class Predicate(ABC):
    """Selects the records that a transformation applies to."""

    config_def: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        """Set the keys of `config_def`, as text without prefix.

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
    """Optional method of a transformation for the columnar path.

    If it works for records of sinks only, because it is about headers or timestamps, the transformation has a class
    attribute `columns_of_sinks_only = True`; records of sources are then not even tried in columns.

    `RecordColumns.headers` is None unless the sink stores headers. Then a transformation with `columns_of_sinks_only`
    also needs `columns_have_headers = True`, which says that it changes them as `apply` does, or leaves them alone;
    without it, all records are transformed one by one.
    """

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The transformed batch, with fewer records if some are dropped; None if the batch is not vectorizable.

        It never raises DataError: None sends the records to `apply`, which does.
        """


@runtime_checkable
class ColumnarPredicate(Protocol):
    """Optional method of a predicate for the columnar path."""

    def test_columns(self, batch: RecordColumns) -> NDArray[np.bool_] | bool | None:
        """Whether the transformation applies, per record or for all; None if the batch is not vectorizable."""
