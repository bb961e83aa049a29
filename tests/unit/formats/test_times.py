"""A Time outside of the day is an error when it is read from Avro and written to a file, never another time."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.json.writer import WriterOptions
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.columnar.arrow_columns import file_columns
from airflow_connect.formats.columnar.avro_columns import record_writer
from airflow_connect.formats.orc import OrcFormat
from airflow_connect.formats.parquet import ArrowFormat, ParquetFormat
from airflow_connect.registry.converters.avro_converter import AvroConverter
from tests.unit.converters.avro.avro_schemas import encoded
from tests.unit.registry.registry_double import RegistryDouble

DAY_MS = 86_400_000
OUTSIDE = [-1, DAY_MS, DAY_MS + 1, (1 << 31) - 1, -(1 << 31)]
SCHEMA = Schema(Type.STRUCT, fields=(Field("t", 0, schemas.time()), Field("o", 1, schemas.time(optional=True))))
AVRO_TIME = {"type": "int", "logicalType": "time-millis"}
AVRO = {"type": "record", "name": "R", "fields": [{"name": "t", "type": AVRO_TIME}]}


class _Sink:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes | memoryview) -> None:
        self.data += bytes(data)


def _written(file_format: Any, value: dict[str, Any]) -> bytes:
    sink = _Sink()
    encoder = file_format.open(sink, SCHEMA)
    encoder.append([value])
    encoder.finish()
    return sink.data


def _columns(value: int) -> Any:
    times = pa.array([0, value], pa.int32())
    return pa.StructArray.from_arrays([times, pa.array([None, None], pa.int32())], ["t", "o"])


@pytest.mark.parametrize("value", OUTSIDE)
@pytest.mark.parametrize("file_format", [AvroFormat(), ParquetFormat(), OrcFormat()], ids=lambda made: made.extension)
def test_append_time_outside_of_the_day_is_refused_by_both_forms(file_format: Any, value: int) -> None:
    with pytest.raises(DataError, match="field t should be a Time, 0 to 86399999 milliseconds"):
        _written(file_format, {"t": value, "o": None})
    with pytest.raises(DataError, match="field o should be a Time"):
        _written(file_format, {"t": 0, "o": value})
    if isinstance(file_format, ArrowFormat):
        assert file_columns(_columns(value), SCHEMA, file_format.arrow_schema(SCHEMA)) is None
    else:
        write = record_writer(file_format, SCHEMA)
        assert write is not None
        assert write(_columns(value)) is None


@pytest.mark.parametrize("value", [0, DAY_MS - 1])
def test_append_first_and_last_time_of_the_day_are_written(value: int) -> None:
    for file_format in (AvroFormat(), ParquetFormat(), OrcFormat()):
        assert _written(file_format, {"t": value, "o": value})
    columns = file_columns(_columns(value), SCHEMA, ParquetFormat().arrow_schema(SCHEMA))
    assert columns is not None
    assert columns.column(0).cast(pa.int32()).to_pylist() == [0, value]
    write = record_writer(AvroFormat(), SCHEMA)
    assert write is not None
    assert write(_columns(value)) is not None


@pytest.mark.parametrize("value", [-1, 0, DAY_MS, DAY_MS + 1])
def test_avro_converter_time_beyond_24_hours_is_an_error_as_in_connect(value: int) -> None:
    message = b"\0\0\0\0\x07" + encoded(AVRO, [{"t": value}])[0]
    answer = {"subject": "t-value", "version": 1, "id": 7, "schema": json.dumps(AVRO)}
    with RegistryDouble((200, answer)) as registry:
        converter = AvroConverter()
        converter.configure({"schema.registry.url": registry.url})
        pieces = converter.to_columns("t", pa.array([message]))
        if 0 <= value <= DAY_MS:
            assert converter.to_connect("t", message).value == {"t": value}
            assert pieces is not None
            assert pieces[0].values.to_pylist() == [{"t": value}]
        else:
            assert pieces is None
            with pytest.raises(DataError, match="Time values must use number of milliseconds"):
                converter.to_connect("t", message)


def test_avro_messages_time_outside_of_the_day_is_refused() -> None:
    from airflow_connect.converters.avro.column_writing import column_writer

    mapping = AvroMapping(AvroSettings())
    change = mapping.transform(SCHEMA)
    assert change is not None
    with pytest.raises(ValueError, match="86400000 milliseconds are outside of the day"):
        change({"t": DAY_MS, "o": None})
    write = column_writer(mapping.avro_schema(SCHEMA), (), SCHEMA, b"", null_is_default=True)
    assert write is not None
    assert write(_columns(DAY_MS)) is None
    assert write(_columns(DAY_MS - 1)) is not None


def test_transform_default_outside_of_the_day_is_a_schema_error() -> None:
    late = Schema(Type.INT32, False, schemas.TIME, 1, default=DAY_MS)
    with pytest.raises(SchemaError, match="A default in the schema cannot be written"):
        ParquetFormat().open(_Sink(), Schema(Type.STRUCT, fields=(Field("t", 0, late),)))


def test_json_time_of_24_hours_is_written_as_in_connect() -> None:
    from airflow_connect.converters.json.writer import value_writer

    write = value_writer(schemas.time(), WriterOptions())
    assert write(DAY_MS) == "86400000"
    with pytest.raises(DataError):
        write(DAY_MS + 1)
