"""Batches on their way to the sink: pieces, keys, records that a predicate chooses, and when columns are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from airflow_connect.api import schema as s
from airflow_connect.api.columns import RecordColumns, ValueColumns
from airflow_connect.api.record import ConnectRecord, KafkaRecord
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.runtime.executor.sink.column_path import Attempts, ColumnPath, column_path, stage_without_columns


def _batch(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None) -> ColumnBatch:
    keys = keys or [None] * len(values)
    records = [KafkaRecord("t", 3, 100 + n, keys[n], value) for n, value in enumerate(values)]
    offsets = np.arange(100, 100 + len(values), dtype=np.int64)
    made: Any = (pa.array(keys, pa.binary()), pa.array(values, pa.binary()))
    return ColumnBatch("t", 3, 1, offsets, offsets + 1000, *made, lambda start, stop: records[start:stop])


class Upper:
    """Text in capitals."""

    def apply_columns(self, batch: RecordColumns) -> RecordColumns:
        texts = [text.upper() for text in batch.value.values.to_pylist()]
        return batch.changed(value=ValueColumns(batch.value.schema, pa.array(texts, pa.string())))


class ToBytes:
    """Another schema."""

    def apply_columns(self, batch: RecordColumns) -> RecordColumns:
        return batch.changed(value=ValueColumns(s.BYTES, batch.value.values.cast(pa.binary())))


class Refuse:
    """Nothing is vectorizable."""

    def apply_columns(self, batch: RecordColumns) -> None:
        return None


class NoTypes:
    """A converter whose schema has no columns."""

    refused_columns = "schema 5 has types that are not read in columns"

    def to_columns(self, topic: str, data: pa.BinaryArray) -> None:
        return None


class Even:
    """Holds for even offsets."""

    def test_columns(self, batch: RecordColumns) -> NDArray[np.bool_]:
        return batch.offsets % 2 == 0


class Always:
    """Holds for all."""

    def test_columns(self, batch: RecordColumns) -> bool:
        return True


@dataclass
class ColumnStage:
    """A transformation with its predicate."""

    transformation: Any
    predicate: Any = None
    negate: bool = False
    alias: str = "step"


def _path(*steps: ColumnStage, key_converter: Any = None) -> ColumnPath:
    converter = StringConverter()
    converter.configure({}, False)
    path = column_path(converter, steps, key_converter)
    assert path is not None
    return path


VALUES = [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (ColumnStage(Upper()), "ABCD"),
        (ColumnStage(Upper(), Even()), "AbCd"),
        (ColumnStage(Upper(), Even(), negate=True), "aBcD"),
        (ColumnStage(Upper(), Always()), "ABCD"),
        (ColumnStage(Upper(), Always(), negate=True), "abcd"),
        (ColumnStage(Refuse(), Always(), negate=True), "abcd"),
    ],
)
def test_step_changes_the_records_that_its_predicate_chooses_in_their_order(step: ColumnStage, expected: str) -> None:
    keys = ByteArrayConverter()
    pieces = _path(step, key_converter=keys).convert(_batch(VALUES, [b"1", b"2", b"3", b"4"]))
    assert pieces is not None and len(pieces) == 1
    piece = pieces[0]
    assert "".join(piece.value.values.to_pylist()) == expected
    assert piece.key is not None and piece.key.values.to_pylist() == [b"1", b"2", b"3", b"4"]
    assert piece.offsets.tolist() == [100, 101, 102, 103] and piece.indexes.tolist() == [0, 1, 2, 3]
    assert [record.value for record in piece.records()] == VALUES


@pytest.mark.parametrize("step", [ColumnStage(ToBytes(), Even()), ColumnStage(Refuse()), ColumnStage(Refuse(), Even())])
def test_batch_of_which_some_records_get_another_schema_or_are_refused_is_not_vectorizable(step: ColumnStage) -> None:
    assert _path(step).convert(_batch(VALUES)) is None


def test_keys_are_converted_only_for_sinks_that_ask() -> None:
    batch = _batch(VALUES, [b"1", b"2", b"3", b"4"])
    (without,) = _path().convert(batch) or ()
    (asked,) = _path(key_converter=StringConverter()).convert(batch) or ()
    assert without.key is None
    assert asked.key is not None and asked.key.values.to_pylist() == ["1", "2", "3", "4"]
    (null_keys,) = _path(key_converter=StringConverter()).convert(_batch(VALUES)) or ()
    assert null_keys.key is None
    assert _path(key_converter=StringConverter()).convert(_batch(VALUES, [b"1", None, b"3", b"4"])) is None


def test_null_value_makes_a_batch_not_vectorizable() -> None:
    assert _path().convert(_batch([b"a", None])) is None


def test_records_among_null_values_keep_their_places_keys_and_times() -> None:
    batch = _batch([None, b"a", None, b"b", b"c", None], [b"0", b"1", b"2", b"3", b"4", b"5"])
    nulls = np.array([100, 102, 105])
    path = column_path(StringConverter(), [ColumnStage(Upper(), Even())], StringConverter(), lambda batch: nulls)
    assert path is not None
    (piece,) = path.convert(batch) or ()
    assert path.nulls is nulls
    assert piece.value.values.to_pylist() == ["a", "b", "C"]
    assert piece.offsets.tolist() == [101, 103, 104] and piece.timestamps.tolist() == [1101, 1103, 1104]
    assert piece.key is not None and piece.key.values.to_pylist() == ["1", "3", "4"]
    assert [record.offset for record in piece.records()] == [101, 103, 104]

    (empty,) = path.convert(batch.slice(2, 3)) or ()
    assert len(empty) == 0 and empty.topic == "t"
    assert path.convert(batch.slice(3, 5)) and path.nulls is None


def test_configuration_with_a_stage_without_columns_has_no_columnar_path() -> None:
    maps = JsonConverter()
    maps.configure({"schema.content": '{"type":"map","keys":{"type":"string"},"values":{"type":"string"}}'}, False)
    assert column_path(maps, ()) is None
    assert column_path(object(), ()) is None
    assert column_path(StringConverter(), [ColumnStage(object())]) is None
    assert column_path(StringConverter(), [ColumnStage(Upper(), object())]) is None


def test_records_of_a_filtered_piece_are_those_that_are_left() -> None:
    (piece,) = _path().convert(_batch(VALUES)) or ()
    left = piece.filter(np.array([False, True, False, True]))
    assert [record.value for record in left.records()] == [b"b", b"d"]
    assert left.filter(np.array([False, False])).records() == []


@pytest.mark.parametrize("in_columns", [0, 4])
def test_attempts_after_failures_become_rare_and_come_back_after_a_success(in_columns: int) -> None:
    attempts, tried = Attempts(), 0
    for _ in range(1000):
        if attempts.is_due():
            tried += 1
            attempts.note(in_columns, 10)
    assert 10 < tried < 25
    while not attempts.is_due():
        pass
    attempts.note(5, 10)
    assert attempts.is_due() and attempts.is_due()


class Lower(Upper):
    """Changed in its record form only."""

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.changed(value=record.value.lower())


class OddInRecords(Even):
    """Changed in its record form only."""

    def test(self, record: ConnectRecord) -> bool:
        return True


@pytest.mark.parametrize(
    "step", [ColumnStage(Lower()), ColumnStage(Upper(), OddInRecords())], ids=["transformation", "predicate"]
)
def test_stage_that_only_inherits_its_columnar_form_has_none(step: ColumnStage) -> None:
    assert column_path(StringConverter(), [step]) is None


def test_stage_that_keeps_records_out_of_columns_is_named() -> None:
    path = _path(ColumnStage(Upper()), ColumnStage(Refuse(), alias="mask"))
    assert path.convert(_batch(VALUES)) is None
    assert path.refused_by == "transformation mask (Refuse)"
    assert path.convert(_batch([b"a", None])) is None
    assert path.refused_by == "null values"
    named = column_path(NoTypes(), ())
    assert named is not None and named.convert(_batch(VALUES)) is None
    assert named.refused_by == "the value converter (schema 5 has types that are not read in columns)"
    path = _path(key_converter=object())
    assert path.convert(_batch(VALUES, keys=[b"k"] * 4)) is None
    assert path.refused_by == "the key converter"

    assert stage_without_columns(object(), ()) == "the value converter (object)"
    steps = [ColumnStage(Upper()), ColumnStage(object(), alias="odd"), ColumnStage(Upper(), object(), alias="later")]
    assert stage_without_columns(StringConverter(), steps) == "transformation odd (object)"
    assert stage_without_columns(StringConverter(), steps[:1]) == ""
    assert stage_without_columns(StringConverter(), [steps[0], steps[2]]) == (
        "the predicate (object) of transformation later (Upper)"
    )
