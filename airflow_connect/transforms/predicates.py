"""HasHeaderKey, RecordIsTombstone, TopicNameMatches. KIP-585; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.patterns import check_java_pattern
from airflow_connect.api.config.validators import Composite, Lambda, NonEmptyString
from airflow_connect.api.transform import Predicate
from airflow_connect.java.patterns.compiled import compile_java_pattern

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import ConnectRecord

NAME, PATTERN = "name", "pattern"


class HasHeaderKey(Predicate):
    """True for records with at least one header with a certain name."""

    config_def = ConfigDef().define(
        ConfigKey(
            NAME, Type.STRING, documentation="The header name.", validator=NonEmptyString(),
            importance=Importance.MEDIUM,
        )
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the name."""
        self._name: str = self.config_def.parse(config)[NAME]

    def test(self, record: ConnectRecord) -> bool:
        """Letter case matters."""
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone(Predicate):
    """True for records with a null value."""

    def test(self, record: ConnectRecord) -> bool:
        """The value's schema does not matter."""
        return record.value is None

    def test_columns(self, batch: RecordColumns) -> NDArray[np.bool_] | bool | None:
        """Per record, or False for all of them."""
        import pyarrow.compute as pc

        values = batch.value.values
        if not values.null_count:
            return False
        nulls: NDArray[np.bool_] = pc.is_null(values).to_numpy(zero_copy_only=False)
        return nulls


class TopicNameMatches(Predicate):
    """True for records whose whole topic matches; for a renamed record the new topic counts."""

    config_def = ConfigDef().define(
        ConfigKey(
            PATTERN, Type.STRING, documentation="Java regular expression that the whole name of a topic must match.",
            validator=Composite(NonEmptyString(), Lambda(check_java_pattern, "valid regex")),
            importance=Importance.MEDIUM,
        )
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        """Compile the pattern."""
        self._pattern = compile_java_pattern(self.config_def.parse(config)[PATTERN])

    def test(self, record: ConnectRecord) -> bool:
        """The whole name."""
        return self.matches(record.topic)

    def test_columns(self, batch: RecordColumns) -> NDArray[np.bool_] | bool | None:
        """The same for all records of a batch."""
        return self.matches(batch.topic)

    def matches(self, topic: str) -> bool:
        """Whether it holds for the records of a topic."""
        return self._pattern.fullmatch(topic) is not None
