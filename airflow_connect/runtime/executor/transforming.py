"""The chain of transformations of one task: opened once, applied record by record, closed.

Source: org.apache.kafka.connect.runtime.TransformationStage (KIP-66, KIP-585).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.api.record import SinkRecord
from airflow_connect.runtime.roles import open_predicate, open_transformation

if TYPE_CHECKING:
    from airflow_connect.api.record import ConnectRecord
    from airflow_connect.api.transform import Predicate, Transformation
    from airflow_connect.api.transform_config import TransformConfig

log = logging.getLogger(__name__)
R = TypeVar("R", bound="ConnectRecord")


@dataclass(frozen=True, slots=True)
class Stage:
    """One transformation and the records that it is for.

    Attributes:
        alias: its name in `transforms`.
        class_name: class as configured, for reports.
        transformation: configured.
        predicate: configured; None: all records.
        negate: the records for which the predicate does not hold.
    """

    alias: str
    class_name: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: R) -> R | None:
        """The transformed record, the same one where the predicate says so, None to drop it.

        Raises:
            Exception: the class refused the record.
            TypeError: the class gave something else than a record of the same place in Kafka.
        """
        if self.predicate is not None and bool(self.predicate.test(record)) is self.negate:
            return record
        transformed = self.transformation.apply(record)
        if transformed is not None:
            _check_same_place(record, transformed)
        return transformed

    def close(self) -> None:
        """Release both; what goes wrong is only logged, as in Connect: the records have been copied."""
        for plugin in (self.transformation, self.predicate):
            if plugin is None:
                continue
            try:
                plugin.close()
            except Exception as error:  # noqa: BLE001 (code of somebody else)
                log.warning("Closing transformation %s (%s) failed: %r", self.alias, self.class_name, error)


def _check_same_place(record: ConnectRecord, transformed: ConnectRecord) -> None:
    """All book-keeping goes by Kafka's own coordinates (KIP-793), so a class must not touch them."""
    if type(transformed) is not type(record):
        raise TypeError(f"it returned {type(transformed).__name__} in place of a record")
    if not isinstance(record, SinkRecord) or not isinstance(transformed, SinkRecord):
        return  # Offsets of a source are taken from the record as it was read.
    if (
        transformed.offset != record.offset
        or transformed.original_topic != record.original_topic
        or transformed.original_partition != record.original_partition
    ):
        raise TypeError("it changed the offset, the original topic or the original partition of the record")


class TransformChain:
    """The stages of a connector, in order."""

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        """`stages`: open; `close` closes them."""
        self.stages = tuple(stages)

    @classmethod
    def open(cls, config: Sequence[TransformConfig]) -> TransformChain:
        """Make and configure every class.

        Raises:
            ConfigError: a class refuses its settings; nothing stays open.
        """
        opened: list[Stage] = []
        try:
            for transform in config:
                predicate = None if transform.predicate is None else open_predicate(transform.predicate)
                name = transform.plugin.name
                opened.append(Stage(transform.alias, name, open_transformation(transform), predicate, transform.negate))
        except BaseException:
            cls(opened).close()
            raise
        return cls(opened)

    def close(self) -> None:
        """Close every stage; idempotent as far as the classes are."""
        for stage in self.stages:
            stage.close()
