"""Records through a chain that has Java classes: stage by stage for a whole batch, and Java gets many in one request.

A record for itself would take a request for each Java class, which is longer than most of what a chain does. What comes
out is the same, in the same order: no record passes a stage twice, except one that is repeated there
(`errors.retry.timeout`), and none passes a stage after one that has refused it. Failures are judged where the records
come out, in their order. An error that is not a record's, such as the end of the JVM, ends the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from airflow_connect.api.record import Header
from airflow_connect.connectors.java.chain import JavaConverter, JavaPredicate, JavaTransformation
from airflow_connect.jvm.data.records import MOST_BYTES, Data, Text
from airflow_connect.jvm.stages import MOST_RECORDS
from airflow_connect.kafka.writing.produced import ProducedRecord
from airflow_connect.runtime.executor.converting import sink_record
from airflow_connect.runtime.executor.error_policy import (
    HEADER_CONVERTER,
    KEY_CONVERTER,
    TRANSFORMATION,
    VALUE_CONVERTER,
    Failure,
)

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord, SinkRecord, SourceRecord
    from airflow_connect.connectors.java.chain import Done
    from airflow_connect.runtime.executor.converting import OpenConverters, RecordConverter
    from airflow_connect.runtime.executor.retrying import Retries
    from airflow_connect.runtime.executor.source.converting import SourceRecordConverter
    from airflow_connect.runtime.executor.transforming import Stage
    from airflow_connect.runtime.executor.unread_counts import UnreadCounts

Origin = TypeVar("Origin")
X = TypeVar("X")


@dataclass(slots=True)
class _Row(Generic[Origin]):
    """A record on its way.

    Attributes:
        origin: what came in.
        now: what it is; None: dropped, or not made yet.
        parts: what its converters have made of it, one after the other: a list each.
        failure: why it goes no further.
        left_out: what converters have left out of it.
    """

    origin: Origin
    now: Any = None
    parts: list[Any] = field(default_factory=list)
    failure: Failure | None = None
    left_out: dict[str, Any] = field(default_factory=dict)


class _Stages:
    """Runs single stages on many items. A result may be an exception: of an item that failed there."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries

    def in_python(self, items: Sequence[X], operation: Callable[[X], Any]) -> list[Any]:
        """One after the other."""
        return [self._tried(item, operation) for item in items]

    def in_java(self, items: Sequence[X], call: Callable[[Sequence[X]], Done[Any]], groups: Sequence[Any]) -> list[Any]:
        """By as few requests as there may be; the items of a group after one that failed are left out.

        Raises:
            ConnectError: Java has failed for another reason than an item.
        """
        done: list[Any] = []
        while len(done) < len(items):
            found = call(items[len(done) : len(done) + MOST_RECORDS])
            done += found.results
            if found.failure is not None:
                at = len(done)
                done.append(self._again_in_java(items[at], call, found.failure))
                while isinstance(done[at], Exception) and len(done) < len(items) and groups[len(done)] is groups[at]:
                    done.append(None)
        return done

    def _tried(self, item: X, operation: Callable[[X], Any]) -> Any:
        try:
            return operation(item)
        except Exception as error:  # noqa: BLE001 (the error policy judges it)
            return self._repeated(lambda: operation(item), error)

    def _again_in_java(self, item: X, call: Callable[[Sequence[X]], Done[Any]], failure: Exception) -> Any:
        fatal: list[Exception] = []

        def once() -> Any:
            try:
                found = call([item])
            except Exception as error:  # noqa: BLE001 (raised below: repeating is for errors of records)
                fatal.append(error)
                return None
            if found.failure is not None:
                raise found.failure
            return found.results[0]

        result = self._repeated(once, failure)
        if fatal:
            raise fatal[0]
        return result

    def _repeated(self, operation: Callable[[], Any], error: Exception) -> Any:
        """The result, or the last error, while errors are temporary."""
        try:
            return self._retries.repeat(operation, error)
        except Exception as last:  # noqa: BLE001 (the error policy judges it)
            return last


class _Batches(Generic[Origin]):
    """What both directions have in common."""

    def __init__(self, converter: OpenConverters, counts: UnreadCounts, retries: Retries) -> None:
        self._converter = converter
        self._counts = counts
        self._stages = _Stages(retries)

    def _transform(self, rows: Sequence[_Row[Origin]]) -> None:
        for stage in self._converter.chain.stages:
            waiting = [row for row in rows if row.failure is None and row.now is not None]
            chosen = self._chosen(waiting, stage)
            transformation = stage.transformation
            if isinstance(transformation, JavaTransformation):
                results = self._in_java(chosen, [row.now for row in chosen], transformation.apply_many)
            else:
                apply = _without_java(stage).apply
                results = self._stages.in_python(chosen, lambda row: self._applied(row, apply))  # noqa: B023 (called here)
            for row, result in _passed(chosen, results, TRANSFORMATION, stage.class_name):
                row.now = result

    def _chosen(self, rows: Sequence[_Row[Origin]], stage: Stage) -> list[_Row[Origin]]:
        """Those that a stage must look at: it tests itself if all of it is Python."""
        predicate, name = stage.predicate, stage.class_name
        if isinstance(predicate, JavaPredicate):
            test = predicate.test_many
            results = self._in_java(rows, [row.now for row in rows], lambda records: test(records, name))
        elif predicate is not None and isinstance(stage.transformation, JavaTransformation):
            answers = predicate.test
            results = self._stages.in_python(rows, lambda row: bool(answers(row.now)))
        else:
            return list(rows)
        return [row for row, holds in _passed(rows, results, TRANSFORMATION, name) if holds is not stage.negate]

    def _convert(self, rows: Sequence[_Row[Origin]], part: _Part) -> None:
        """Add a part to each row that has not failed: the list of what has become of its items."""
        waiting = [row for row in rows if row.failure is None and row.now is not None]
        found: list[Any]
        if part.many is None:
            found = self._stages.in_python(waiting, lambda row: self._watched(row, part))
        else:
            items = [(row, item) for row in waiting for item in part.items(row)]
            results = iter(self._in_java([row for row, _ in items], [item for _, item in items], part.many))
            found = [_one_error([next(results) for _ in part.items(row)]) for row in waiting]
        for row, result in _passed(waiting, found, part.stage, self._converter.name_of(part.stage)):
            row.parts.append(result)

    def _in_java(self, rows: Sequence[_Row[Origin]], items: Sequence[X], call: Callable[[Any], Done[Any]]) -> list[Any]:
        return self._stages.in_java(items, call, rows)

    def _applied(self, row: _Row[Origin], apply: Callable[[Any], Any]) -> Any:
        """What a Python transformation makes of a row; what it has changed is kept with the row."""
        try:
            result = apply(row.now)
        except Exception:
            self._counts.clear()
            raise
        if any(self._counts.found):
            row.left_out.update(self._counts.take())
        return result

    def _watched(self, row: _Row[Origin], part: _Part) -> list[Any]:
        """What a Python converter makes of the items of a row; what it has left out is kept with the row."""
        try:
            results = [part.one(item) for item in part.items(row)]
        except Exception:
            self._counts.clear()
            raise
        if any(self._counts.found):
            row.left_out.update(self._counts.take())
        return results


class _Part(NamedTuple):
    """A part of records, and its converter.

    Attributes:
        stage: key, value or header converter.
        items: what a row has of it: one for its key or its value, any number of headers.
        one: converts an item in Python.
        many: converts items in Java; None: the converter is Python.
    """

    stage: str
    items: Callable[[Any], Sequence[Any]]
    one: Callable[[Any], Any]
    many: Callable[[Any], Done[Any]] | None


class SinkBatches(_Batches["KafkaRecord"]):
    """Batches of messages to records, as `RecordConverter.convert` makes them."""

    def __init__(self, converter: RecordConverter, retries: Retries) -> None:
        """`converter`: open, with `java`."""
        super().__init__(converter, converter.unread, retries)
        key, value, headers = converter.key, converter.value, converter.headers
        self._parts = (
            _Part(
                KEY_CONVERTER,
                lambda row: (Text(row.origin.topic, row.origin.key),),
                lambda text: key.to_connect(text.topic, text.data),
                key.to_connect_many if isinstance(key, JavaConverter) else None,
            ),
            _Part(
                VALUE_CONVERTER,
                lambda row: (Text(row.origin.topic, row.origin.value),),
                lambda text: value.to_connect(text.topic, text.data),
                value.to_connect_many if isinstance(value, JavaConverter) else None,
            ),
            _Part(
                HEADER_CONVERTER,
                lambda row: [Text(row.origin.topic, data, name) for name, data in row.origin.headers],
                lambda text: headers.to_connect_header(text.topic, text.name, text.data),
                headers.to_connect_many if isinstance(headers, JavaConverter) else None,
            ),
        )

    def convert(self, records: Sequence[KafkaRecord]) -> Iterator[tuple[KafkaRecord, SinkRecord | Failure | None]]:
        """Each message with its record; None: a transformation drops it.

        Raises:
            ConnectError: the JVM has ended, or a class in it failed for another reason than a record.
        """
        for chunk in _chunks(records):
            rows = [_Row(record, record) for record in chunk]
            self._to_connect(rows)
            self._transform(rows)
            yield from map(self._came_out, rows)

    def _to_connect(self, rows: Sequence[_Row[KafkaRecord]]) -> None:
        for part in self._parts:
            self._convert(rows, part)
        for row in rows:
            if row.failure is None:
                (key,), (value,), headers = row.parts
                named = zip((name for name, _ in row.origin.headers), headers, strict=True)
                row.now = sink_record(row.origin, key, value, tuple(Header(name, *one) for name, one in named))

    def _came_out(self, row: _Row[KafkaRecord]) -> tuple[KafkaRecord, SinkRecord | Failure | None]:
        record, now = row.origin, row.now
        if row.failure is not None:
            return record, row.failure
        if row.left_out:
            self._counts.add_taken(record, row.parts[0][0].schema, row.parts[1][0].schema, row.left_out)
        if now is not None and now.consumed is not record:
            # A third-party transformation created a new record instead of a changed one; it is still the same message.
            now = now.changed(consumed=record)
        return record, now


class SourceBatches(_Batches["SourceRecord"]):
    """Batches of a source to messages, as `SourceRecordConverter.convert` makes them."""

    def __init__(self, converter: SourceRecordConverter, retries: Retries) -> None:
        """`converter`: open, with `java`."""
        super().__init__(converter, converter.unwritten, retries)
        key, value, headers = converter.key, converter.value, converter.headers
        self._parts = (
            _Part(
                HEADER_CONVERTER,
                lambda row: [Data(row.now.topic, h.schema, h.value, h.key) for h in row.now.headers],
                lambda data: headers.from_connect_header(data.topic, data.name, data.schema, data.value),
                headers.from_connect_many if isinstance(headers, JavaConverter) else None,
            ),
            _Part(
                KEY_CONVERTER,
                lambda row: (Data(row.now.topic, row.now.key_schema, row.now.key),),
                lambda data: key.from_connect(data.topic, data.schema, data.value),
                key.from_connect_many if isinstance(key, JavaConverter) else None,
            ),
            _Part(
                VALUE_CONVERTER,
                lambda row: (Data(row.now.topic, row.now.value_schema, row.now.value),),
                lambda data: value.from_connect(data.topic, data.schema, data.value),
                value.from_connect_many if isinstance(value, JavaConverter) else None,
            ),
        )

    def convert(
        self, records: Sequence[SourceRecord]
    ) -> Iterator[tuple[SourceRecord, ProducedRecord | Failure | None]]:
        """Each record with its message; None: a transformation drops it.

        Raises:
            ConnectError: the JVM has ended, or a class in it failed for another reason than a record.
        """
        for start in range(0, len(records), MOST_RECORDS):
            rows = [_Row(record, record) for record in records[start : start + MOST_RECORDS]]
            self._transform(rows)
            for part in self._parts:
                self._convert(rows, part)
            yield from map(self._came_out, rows)

    def _came_out(self, row: _Row[SourceRecord]) -> tuple[SourceRecord, ProducedRecord | Failure | None]:
        now = row.now
        if row.failure is not None or now is None:
            return row.origin, row.failure
        if row.left_out:
            self._counts.add_taken(now, now.key_schema, now.value_schema, row.left_out)
        headers, (key,), (value,) = row.parts
        named = tuple(zip((header.key for header in now.headers), headers, strict=True))
        return row.origin, ProducedRecord(now.topic, now.partition, key, value, named, now.timestamp)


def _chunks(records: Sequence[KafkaRecord]) -> Iterator[Sequence[KafkaRecord]]:
    """As many as one request may have, so that few records exist twice in memory."""
    start = size = 0
    for row, record in enumerate(records):
        length = len(record.key or b"") + len(record.value or b"")
        if row - start == MOST_RECORDS or (row > start and size + length > MOST_BYTES):
            yield records[start:row]
            start, size = row, 0
        size += length
    yield records[start:]


def _passed(
    rows: Sequence[_Row[Origin]], results: Sequence[Any], stage: str, class_name: str
) -> Iterator[tuple[_Row[Origin], Any]]:
    """Rows with their results; those that failed get their failure, and are left out."""
    for row, result in zip(rows, results, strict=True):
        if isinstance(result, Exception):
            row.failure = Failure.of(result, stage, class_name)
        else:
            yield row, result


def _without_java(stage: Stage) -> Stage:
    """The stage, without a predicate that has been asked in Java."""
    return replace(stage, predicate=None) if isinstance(stage.predicate, JavaPredicate) else stage


def _one_error(results: list[Any]) -> list[Any] | Exception:
    """The results, or the first error among them."""
    return next((one for one in results if isinstance(one, Exception)), results)
