"""The columnar path up to the sink: raw messages, converter, transformations; a whole batch or nothing.

A task uses it if every stage has a columnar form (`column_path`). If a stage returns None for a batch, the batch takes
the reference path (runtime/executor/converting.py), so errors, retries and dead letters are the same on both paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from airflow_connect.api.columns import RecordColumns, ValueColumns
from airflow_connect.api.converter import ColumnarConverter, ColumnarWritingConverter
from airflow_connect.api.transform import ColumnarPredicate, ColumnarTransformation
from airflow_connect.runtime.executor.sink.null_values import present_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.kafka.reading.column_batch import ColumnBatch
    from airflow_connect.runtime.executor.sink.header_texts import HeaderTexts

_MOST_PIECES = 16
"""Maximum number of runs of equal schemas in one batch; more of them are not worth a column each."""


class ColumnStage(Protocol):
    """A transformation of the configuration with its predicate."""

    @property
    def alias(self) -> str:
        """Its name in `transforms`."""

    @property
    def transformation(self) -> Any:
        """The transformation."""

    @property
    def predicate(self) -> Any | None:
        """The predicate; None if the transformation applies to every record."""

    @property
    def negate(self) -> bool:
        """Whether the transformation applies to records for which the predicate is false."""


NullsOf = Callable[["ColumnBatch"], "NDArray[np.int64] | None"]
"""Offsets of the records without value that the sink only leaves out; None: it needs them. See `null_values.py`."""


def column_path(
    value_converter: Any,
    steps: Sequence[ColumnStage],
    key_converter: Any | None = None,
    nulls_of: NullsOf = lambda batch: None,
    headers: HeaderTexts | None = None,
) -> ColumnPath | None:
    """The columnar path of a configuration, or None if one of its stages has no columnar form.

    Args:
        value_converter: configured.
        steps: in order.
        key_converter: configured; None if the sink does not need keys.
        nulls_of: asked for each batch with records that have no value.
        headers: converts headers; None if the sink does not need them.
    """
    if stage_without_columns(value_converter, steps, with_headers=headers is not None):
        return None
    return ColumnPath(value_converter, steps, key_converter, nulls_of, headers)


def stage_without_columns(value_converter: Any, steps: Sequence[ColumnStage], *, with_headers: bool = False) -> str:
    """The first stage of a configuration that has no columnar form, as the reason in a note; "": all have one.

    Args:
        value_converter: configured.
        steps: in order.
        with_headers: whether the sink needs headers.
    """
    if not _is_columnar(value_converter, ColumnarConverter):
        return f"{_VALUE_CONVERTER} ({type(value_converter).__name__})"
    for step in steps:
        if not _is_columnar(step.transformation, ColumnarTransformation):
            return _name_of(step)
        if with_headers and not _keeps_headers(step.transformation):
            return f"{_name_of(step)}, whose columnar form is without headers"
        if step.predicate is not None and not _is_columnar(step.predicate, ColumnarPredicate):
            return f"the predicate ({type(step.predicate).__name__}) of {_name_of(step)}"
    return ""


def have_columns(steps: Sequence[ColumnStage]) -> bool:
    """Whether every transformation, and every predicate, has a columnar form."""
    stages: list[tuple[Any, type]] = [(step.transformation, ColumnarTransformation) for step in steps]
    stages += [(step.predicate, ColumnarPredicate) for step in steps if step.predicate is not None]
    return all(_is_columnar(stage, kind) for stage, kind in stages)


def writes_columns(converter: Any) -> bool:
    """Whether a converter itself writes columns, not only a class that it inherits from."""
    is_writing = isinstance(converter, ColumnarWritingConverter)
    return is_writing and not _is_only_inherited(converter, ColumnarWritingConverter)


def transformed(
    steps: Sequence[ColumnStage], piece: RecordColumns, refused: Callable[[str], None] | None = None
) -> RecordColumns | None:
    """Records after every step, fewer where some were dropped; None if a step finds them not vectorizable.

    Args:
        steps: in order.
        piece: the records.
        refused: gets the name of such a step.
    """
    for step in steps:
        if not len(piece):
            break
        after = _apply(step, piece)
        if after is None:
            if refused is not None:
                refused(_name_of(step))
            return None
        piece = after
    return piece


_NO_VALUES = (ValueColumns(None, pa.nulls(0, pa.binary())),)
"""Of a batch in which no record has a value."""
_VALUE_CONVERTER, _KEY_CONVERTER, _NULL_VALUES = "the value converter", "the key converter", "null values"
_HEADER_CONVERTER = "the header converter"


def _name_of(step: ColumnStage) -> str:
    return f"transformation {step.alias} ({type(step.transformation).__name__})"


def _keeps_headers(transformation: Any) -> bool:
    """Whether the columnar form treats headers as the record form does; one that is about headers has to say so."""
    is_about_them = getattr(transformation, "columns_of_sinks_only", False)
    return not is_about_them or bool(getattr(transformation, "columns_have_headers", False))


_FORMS: dict[type, tuple[str, str]] = {
    ColumnarConverter: ("to_connect", "to_columns"),
    ColumnarWritingConverter: ("from_connect", "from_columns"),
    ColumnarTransformation: ("apply", "apply_columns"),
    ColumnarPredicate: ("test", "test_columns"),
}
"""Names of the record form and of the columnar form."""


def _is_columnar(stage: Any, kind: type) -> bool:
    return isinstance(stage, kind) and bool(getattr(stage, "has_columns", True)) and not _is_only_inherited(stage, kind)


def _is_only_inherited(stage: Any, kind: type) -> bool:
    """Whether a class has its own record form but inherits the columnar one, which then may behave differently."""
    classes = type(stage).__mro__
    record_form, columns_form = (next((c for c in classes if name in vars(c)), None) for name in _FORMS[kind])
    return record_form is not None and columns_form is not None and not issubclass(columns_form, record_form)


class ColumnPath:
    """Converts and transforms batches."""

    def __init__(
        self,
        value_converter: ColumnarConverter,
        steps: Sequence[ColumnStage],
        key_converter: Any | None,
        nulls_of: NullsOf,
        headers: HeaderTexts | None,
    ) -> None:
        """Use `column_path`."""
        self._headers = headers
        self._nulls_of = nulls_of
        self._converter = value_converter
        self._key_converter = key_converter
        self._steps = steps
        self.refused_by = ""
        """The stage for which the last batch was not vectorizable."""
        self.nulls: NDArray[np.int64] | None = None
        """Offsets of records of the last batch that the sink would only leave out, because they have no value."""

    def convert(self, batch: ColumnBatch) -> list[RecordColumns] | None:
        """The records of a batch, converted and transformed, at least one piece; None if it is not vectorizable.

        Each piece has one schema and one topic. Records that were dropped are in none of them: `indexes` says which.

        Raises:
            Exception: whatever a stage raises that cannot work now, such as a registry that does not answer.
        """
        self.nulls = self._nulls_of(batch) if batch.values.null_count else None
        if batch.values.null_count and self.nulls is None:
            self._refused(_NULL_VALUES)
            return None
        keys = self._keys(batch)
        if keys is None:
            self._refused(_KEY_CONVERTER)
            return None
        headers = None if self._headers is None else self._headers.of(batch)
        if headers is None and self._headers is not None:
            self._refused(_HEADER_CONVERTER)
            return None
        present = _Present(batch, keys[0] if keys else None, headers)
        found = self._converter.to_columns(batch.topic, present.values) if len(present) else _NO_VALUES
        if found is None or not 0 < len(found) <= _MOST_PIECES:
            why = getattr(self._converter, "refused_columns", "") if found is None else ""
            self._refused(f"{_VALUE_CONVERTER} ({why})" if why else _VALUE_CONVERTER)
            return None
        pieces = []
        start = 0
        for values in found:
            piece = transformed(self._steps, present.records(values, start), self._refused)
            if piece is None:
                return None
            pieces.append(piece)
            start += len(values)
        return pieces

    def _refused(self, stage: str) -> None:
        self.refused_by = stage

    def _keys(self, batch: ColumnBatch) -> Sequence[ValueColumns] | None:
        """The keys as one piece, () if they are not needed or all null, None if they are not vectorizable."""
        if self._key_converter is None or batch.keys.null_count == len(batch):
            return ()
        if batch.keys.null_count or not _is_columnar(self._key_converter, ColumnarConverter):
            return None
        found: Sequence[ValueColumns] | None = self._key_converter.to_columns(batch.topic, batch.keys)
        return found if found is not None and len(found) == 1 else None


class _Present:
    """The records of a batch that have a value."""

    def __init__(self, batch: ColumnBatch, keys: ValueColumns | None, headers: Any | None) -> None:
        """`keys`, `headers`: of the whole batch."""
        self._batch = batch
        self._keys = keys
        self._headers = headers
        self._indexes: NDArray[np.int64] = np.arange(len(batch), dtype=np.int64)
        self.values = batch.values
        if batch.values.null_count:
            self._indexes = self._indexes[present_in(batch)]
            self.values = batch.values.drop_null()
            taken: Any = self._indexes
            self._keys = None if keys is None else ValueColumns(keys.schema, keys.values.take(taken))
            self._headers = None if headers is None else headers.take(taken)

    def __len__(self) -> int:
        return len(self._indexes)

    def records(self, values: ValueColumns, start: int) -> RecordColumns:
        """The converted records from `start` on."""
        batch, keys, headers, read = self._batch, self._keys, self._headers, self._batch.read_records
        indexes = self._indexes[start : start + len(values)]

        def read_records(indexes: NDArray[np.int64]) -> list[KafkaRecord]:
            if not len(indexes):
                return []
            first = int(indexes[0])
            around = read(first, int(indexes[-1]) + 1)
            return [around[index - first] for index in indexes.tolist()]

        return RecordColumns(
            topic=batch.topic,
            original_topic=batch.topic,
            original_partition=batch.partition,
            offsets=batch.offsets[indexes],
            timestamps=batch.timestamps[indexes],
            timestamp_type=batch.timestamp_type,
            key=None if keys is None else ValueColumns(keys.schema, keys.values.slice(start, len(values))),
            value=values,
            read_records=read_records,
            indexes=indexes,
            headers=None if headers is None else headers.slice(start, len(values)),
        )


def _apply(step: ColumnStage, piece: RecordColumns) -> RecordColumns | None:
    """A transformation where its predicate holds; None if that is not vectorizable."""
    if step.predicate is None:
        return _checked(step.transformation.apply_columns(piece), piece)
    answer = step.predicate.test_columns(piece)
    if answer is None:
        return None
    holds = np.full(len(piece), answer) if isinstance(answer, bool | np.bool_) else np.asarray(answer, dtype=np.bool_)
    if step.negate:
        holds = ~holds
    if not holds.any():
        return piece
    if holds.all():
        return _checked(step.transformation.apply_columns(piece), piece)
    chosen = piece.filter(holds)
    changed = _checked(step.transformation.apply_columns(chosen), chosen)
    return None if changed is None else _merged(piece.filter(~holds), changed)


def _checked(after: RecordColumns | None, before: RecordColumns) -> RecordColumns | None:
    """The result of a transformation, or None if values became null, because null values have no schema.

    Also None if it has lost the headers.
    """
    if after is None or len(after) > len(before):
        return None
    if before.headers is not None and (after.headers is None or len(after.headers) != len(after)):
        return None
    return None if after.value.values.null_count else after


def _merged(kept: RecordColumns, changed: RecordColumns) -> RecordColumns | None:
    """Both in the order of the log; None if they have different schemas or topics."""
    if not len(changed):
        return kept
    if changed.topic != kept.topic or (changed.key is None) != (kept.key is None):
        return None
    indexes = np.concatenate([kept.indexes, changed.indexes])
    order: NDArray[np.intp] = np.argsort(indexes)
    value = _joined(kept.value, changed.value, order)
    key = None if kept.key is None or changed.key is None else _joined(kept.key, changed.key, order)
    if value is None or (kept.key is not None and key is None):
        return None
    headers: Any = None
    if kept.headers is not None and changed.headers is not None:
        both: Any = pa.concat_arrays([kept.headers, changed.headers])
        headers = both.take(pa.array(order))
    return kept.changed(
        offsets=np.concatenate([kept.offsets, changed.offsets])[order],
        timestamps=np.concatenate([kept.timestamps, changed.timestamps])[order],
        key=key,
        value=value,
        indexes=indexes[order],
        headers=headers,
    )


def _joined(first: ValueColumns, second: ValueColumns, order: Any) -> ValueColumns | None:
    """Values concatenated and put in order; None if their schemas differ."""
    if first.schema != second.schema:
        return None
    # Equal schemas may differ in what their columns say about nulls: a transformation makes structs anew.
    kind = _all_nullable(first.values.type)
    both: Any = pa.concat_arrays([_as_type(first.values, kind), _as_type(second.values, kind)])
    return ValueColumns(first.schema, both.take(order))


def _all_nullable(kind: pa.DataType) -> pa.DataType:
    """The type with fields, items and values that may all be null."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _all_nullable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_all_nullable(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_all_nullable(kind.key_type), _all_nullable(kind.item_type))
    return kind


def _as_type(values: Any, kind: pa.DataType) -> Any:
    return values if values.type == kind else values.cast(kind)


class Attempts:
    """When to try columns: less often after batches of which less than half went in columns.

    Halving such a batch takes longer than its columns save.
    """

    _MOST_LEFT_OUT = 64

    def __init__(self) -> None:
        self._failed = 0
        self._left_out = 0

    def is_due(self) -> bool:
        """Whether to try the next batch."""
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def note(self, in_columns: int, records: int) -> None:
        """Record the result of a try: how many records of the batch were written in columns, and how many it has."""
        self._failed = 0 if 2 * in_columns >= records else self._failed + 1
        self._left_out = min((1 << self._failed) - 1, self._MOST_LEFT_OUT)
