"""The chain of transformations of one task: opened once, applied record by record, closed.

Source: org.apache.kafka.connect.runtime.TransformationStage (KIP-66, KIP-585).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.api.record import SinkRecord
from airflow_connect.runtime.plugin_objects import open_predicate, open_transformation

if TYPE_CHECKING:
    from airflow_connect.api.record import ConnectRecord
    from airflow_connect.api.transform import Predicate, Transformation
    from airflow_connect.config.resolved.transforms import TransformConfig
    from airflow_connect.connectors.java.chain import JavaChain

log = logging.getLogger(__name__)
R = TypeVar("R", bound="ConnectRecord")


@dataclass(frozen=True, slots=True)
class Stage:
    """One transformation and the records that it applies to.

    Attributes:
        alias: its name in `transforms`.
        class_name: the class as configured, for reports.
        transformation: configured.
        predicate: configured; None: all records.
        negate: it applies to records for which the predicate is false.
    """

    alias: str
    class_name: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: R) -> R | None:
        """The transformed record; the unchanged record if the predicate excludes it; None to drop it.

        Raises:
            Exception: the class refused the record.
            TypeError: the class did not return a record with the same position in Kafka.
        """
        if self.predicate is not None and bool(self.predicate.test(record)) is self.negate:
            return record
        transformed = self.transformation.apply(record)
        if transformed is not None:
            _check_same_place(record, transformed)
        return transformed

    def close(self) -> None:
        """Release both; errors are only logged, as in Connect, because the records have been copied."""
        for plugin in (self.transformation, self.predicate):
            if plugin is None:
                continue
            try:
                plugin.close()
            except Exception as error:  # noqa: BLE001 (third-party code)
                log.warning("Closing transformation %s (%s) failed: %r", self.alias, self.class_name, error)


def _check_same_place(record: ConnectRecord, transformed: ConnectRecord) -> None:
    """All accounting uses Kafka's own coordinates (KIP-793), so a class must not change them."""
    if type(transformed) is not type(record):
        raise TypeError(f"it returned {type(transformed).__name__} instead of a record")
    if not isinstance(record, SinkRecord) or not isinstance(transformed, SinkRecord):
        return  # Offsets of a source come from the original record.
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
    def open(cls, config: Sequence[TransformConfig], java: JavaChain | None = None) -> TransformChain:
        """Create and configure every class.

        Args:
            config: the stages.
            java: what Java classes run in; None: only their configuration is checked.

        Raises:
            ConfigError: the settings of a class are wrong; nothing stays open.
            TaskFailedError: the JVM of a Java class failed.
        """
        opened: list[Stage] = []
        try:
            for transform in config:
                predicate = None if transform.predicate is None else open_predicate(transform.predicate, java)
                transformation, name = open_transformation(transform, java), transform.plugin.name
                opened.append(Stage(transform.alias, name, transformation, predicate, transform.negate))
        except BaseException:
            cls(opened).close()
            raise
        return cls(opened)

    def close(self) -> None:
        """Close every stage; idempotent if the classes are."""
        for stage in self.stages:
            stage.close()
