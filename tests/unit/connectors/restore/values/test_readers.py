"""Readers of files of values: what the sinks write comes back, and so do files of other programs."""

from __future__ import annotations

import gzip
import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from airflow_connect.api.schema import (
    BYTES,
    DATE,
    DECIMAL,
    DECIMAL_SCALE,
    INT32,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    map_of,
    struct,
)
from airflow_connect.connectors.restore.options import (
    INTEGERS,
    MILLISECONDS,
    CsvOptions,
)
from airflow_connect.connectors.restore.values import texts
from airflow_connect.connectors.restore.values.arrow_values import OrcReader, ParquetReader
from airflow_connect.connectors.restore.values.avro_values import AvroReader
from airflow_connect.connectors.restore.values.batches import (
    WholeRecordsError,
)
from airflow_connect.connectors.restore.values.texts import (
    bytes_values,
    csv_values,
    decompressed,
    json_values,
    text_values,
)
from airflow_connect.errors import DataError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.format import Format
from airflow_connect.formats.json_lines import JsonFormat
from airflow_connect.formats.orc import OrcFormat
from airflow_connect.formats.parquet import ParquetFormat
from tests.support.copies.backups import encoded, record


class Sink(io.BytesIO):
    def write(self, data: Any) -> int:
        return super().write(bytes(data))


PRICE = Schema(Type.BYTES, True, DECIMAL, 1, parameters={DECIMAL_SCALE: "2", "connect.decimal.precision": "9"})
INNER = struct(("a", INT32), ("b", OPTIONAL_STRING), name="Inner")
VALUE = struct(
    ("id", INT32),
    ("name", OPTIONAL_STRING),
    ("day", Schema(Type.INT32, name=DATE, version=1)),
    ("at", Schema(Type.INT64, optional=True, name=TIMESTAMP, version=1)),
    ("time", Schema(Type.INT32, name=TIME, version=1)),
    ("data", BYTES),
    ("inner", INNER),
    ("many", array(INNER)),
    ("flag", Schema(Type.BOOLEAN)),
    ("f", Schema(Type.FLOAT32)),
    name="Value",
)
RICH = struct(
    *((f.name, f.schema) for f in VALUE.fields), ("price", PRICE), ("tags", map_of(STRING, INT32)), name="Rich"
)


def row(n: int, *, rich: bool = False) -> dict[str, Any]:
    plain = {
        "id": n,
        "name": None if n % 3 == 0 else f"näme {n}",
        "day": 20_000 + n,
        "at": None if n % 2 else 1_700_000_000_000 + n,
        "time": n,
        "data": b"\0\xff" * n,
        "inner": {"a": n, "b": None},
        "many": [{"a": 1, "b": "x"}, {"a": 2, "b": None}][: n % 3],
        "flag": n % 2 == 0,
        "f": n / 4,
    }
    return plain | ({"price": Decimal(n).scaleb(-2), "tags": {"x": n}} if rich else {})


def written(form: Format, schema: Schema | None, rows: list[Any]) -> io.BytesIO:
    sink = Sink()
    encoder = form.open(sink, schema)
    encoder.append(rows)
    encoder.finish()
    return io.BytesIO(sink.getvalue())


def reader_of(form: Format, content: Any) -> Any:
    if isinstance(form, ParquetFormat):
        return ParquetReader(content, MILLISECONDS)
    return OrcReader(content) if isinstance(form, OrcFormat) else AvroReader(content)


def names_of_types(schema: Schema, has_required: bool) -> list[Any]:
    """Types without the names of structs, which Parquet and ORC do not have."""
    found = []
    for field in schema.fields:
        kind, name = field.schema.type, None if field.schema.type is Type.STRUCT else field.schema.name
        if name == TIME and not has_required:
            kind, name = Type.INT64, TIMESTAMP  # ORC has no time of day: the sink writes one of 1970-01-01
        found.append((field.name, kind, name, has_required and field.schema.optional))
    return found


@pytest.mark.parametrize("rich", [False, True], ids=["plain", "rich"])
@pytest.mark.parametrize("form", [ParquetFormat(), OrcFormat(), AvroFormat()], ids=["parquet", "orc", "avro"])
def test_what_sinks_write_comes_back(form: Format, *, rich: bool) -> None:
    schema, rows = RICH if rich else VALUE, [row(n, rich=rich) for n in range(50)]
    batches = list(reader_of(form, written(form, schema, rows)))
    assert [value for batch in batches for value in batch.values()] == rows
    assert batches[0].first == 0
    found = batches[0].schema
    if isinstance(form, AvroFormat):
        assert found == schema
    else:
        has_required = isinstance(form, ParquetFormat)  # columns of ORC are optional
        assert names_of_types(found, has_required) == names_of_types(schema, has_required)


def test_columns_are_kept_where_no_value_must_be_made_by_itself() -> None:
    (batch,) = ParquetReader(written(ParquetFormat(), VALUE, [row(1)]), MILLISECONDS)
    assert batch.rows is None and batch.column is not None and batch.column.type.field("at").type == pa.int64()


def test_types_that_other_programs_write() -> None:
    table = pa.table(
        {
            "u8": pa.array([255], pa.uint8()), "u32": pa.array([4_000_000_000], pa.uint32()),
            "u64": pa.array([2**64 - 1], pa.uint64()), "h": pa.array([1.5], pa.float16()),
            "large": pa.array(["x"], pa.large_string()), "fixed": pa.array([b"ab"], pa.binary(2)),
            "word": pa.array(["w"]).dictionary_encode(), "us": pa.array([1_000], pa.timestamp("us", "UTC")),
            "list": pa.array([[1, None]], pa.large_list(pa.int16())), "none": pa.nulls(1),
        }
    )  # fmt: skip
    sink = Sink()
    pq.write_table(table, sink)
    (batch,) = ParquetReader(io.BytesIO(sink.getvalue()), MILLISECONDS)
    (value,) = batch.values()
    assert value == {
        "u8": 255, "u32": 4_000_000_000, "u64": Decimal(2**64 - 1), "h": 1.5, "large": "x", "fixed": b"ab", "word": "w",
        "us": 1, "list": [1, None], "none": None,
    }  # fmt: skip


def test_timestamps_finer_than_milliseconds_are_not_cut() -> None:
    sink = Sink()
    pq.write_table(pa.table({"at": pa.array([1_001], pa.timestamp("us"))}), sink)
    with pytest.raises(pa.ArrowInvalid, match="would lose data"):
        list(ParquetReader(io.BytesIO(sink.getvalue()), MILLISECONDS))
    (batch,) = ParquetReader(io.BytesIO(sink.getvalue()), INTEGERS)
    assert (batch.values(), batch.schema.fields[0].schema.name) == ([{"at": 1_001}], None)  # type: ignore[union-attr]


def test_type_that_connect_does_not_have_is_named() -> None:
    sink = Sink()
    pq.write_table(pa.table({"a": pa.array([{"b": 1}], pa.struct([("b", pa.duration("s"))]))}), sink)
    with pytest.raises(ValueError, match=r"its column a\.b has the type duration"):
        ParquetReader(io.BytesIO(sink.getvalue()), MILLISECONDS)


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_whole_records_are_not_values(form: str) -> None:
    content = io.BytesIO(encoded([record(0)], form))
    formats = {"parquet": ParquetFormat(), "orc": OrcFormat(), "avro": AvroFormat()}
    with pytest.raises(WholeRecordsError):
        reader_of(formats[form], content)


def test_avro_of_other_programs() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int", "string"]}]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"a": 1}, {"a": "x"}, {"a": None}], codec="deflate")
    (batch,) = AvroReader(io.BytesIO(sink.getvalue()))
    assert batch.values() == [{"a": {"int": 1, "string": None}}, {"a": {"int": None, "string": "x"}}, {"a": None}]


def stream(data: bytes, name: str = "x") -> io.BufferedReader:
    return decompressed(io.BytesIO(data), name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}\n{"a":2}\n',
        b'{"a":1}{"a":2}',
        b'{\n "a":\n 1}\n\n{"a": 2}',
        b'{"a":1}\r\n{"a":2}\r\n',
        b' {"a":1} {"a":2} ',
    ],
)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_json_lines_and_concatenated_documents(data: bytes, packed: str) -> None:
    if packed:
        data = gzip.compress(data) if packed == ".gz" else pa.compress(data, "zstd", asbytes=True)
    values = [
        value for batch in json_values(stream(data, f"x.json{packed}"), has_schemas=False) for value in batch.values()
    ]
    assert values == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "odd", [b"", b"null", b'{"a":1} {"a":2}', b'{"a":\n1}', b"[", b'{"a":12345678901234567890}', b'{"a":1e400}', b"{"]
)
@pytest.mark.parametrize("before", [0, 3, 70_000])
def test_lines_in_columns_are_the_documents_of_one_by_one(
    odd: bytes, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (
        b"".join(b'{"id": %d, "at": 1700000000000000%03d}\n' % (n, n % 1000) for n in range(before)) + odd + b"\n7.50\n"
    )

    def read() -> tuple[list[Any], list[bool], str]:
        values: list[Any] = []
        firsts, error = [], ""
        try:
            for batch in json_values(stream(data), has_schemas=False):
                assert batch.first == len(values)
                values += batch.values()
                firsts.append(batch.column is not None)
        except (ValueError, DataError) as caught:
            error = str(caught)
        return values, firsts, error

    in_columns, used, told = read()
    monkeypatch.setattr(texts, "_column", lambda *_: None)
    one_by_one, unused, same = read()
    assert (in_columns, told) == (one_by_one, same)
    assert not any(unused) and any(used) == (before > 3)


def test_json_with_schemas() -> None:
    one = b'{"schema":{"type":"int32","optional":false},"payload":1}'
    two = b'{"schema":{"type":"string","optional":true},"payload":"x"}'
    found = list(json_values(stream(b"\n".join([one, one, two])), has_schemas=True))
    assert [(batch.first, batch.schema, batch.values()) for batch in found] == [
        (0, INT32, [1, 1]),
        (2, OPTIONAL_STRING, ["x"]),
    ]


def test_json_of_the_sink_comes_back() -> None:
    rows = [{"a": n, "b": [None, "ü"]} for n in range(12_000)]
    content = written(JsonFormat(), None, rows).getvalue()
    assert [value for batch in json_values(stream(content), has_schemas=False) for value in batch.values()] == rows


@pytest.mark.parametrize(("packed", "cut"), [(".gz", 9), (".gz", 1), (".zst", 1), (".zst", 9)])
def test_compressed_stream_that_is_cut_off_is_no_end_of_file(packed: str, cut: int) -> None:
    data = b'{"a":1}\n' * 100_000
    data = gzip.compress(data) if packed == ".gz" else pa.compress(data, "zstd", asbytes=True)
    with pytest.raises(Exception, match=r"cut off|[Tt]runcated|end of|incomplete"):
        list(json_values(stream(data[:-cut], f"x{packed}"), has_schemas=False))


def test_gzip_of_several_members() -> None:
    data = gzip.compress(b"a\n") + gzip.compress(b"b\n")
    assert [value for batch in text_values(stream(data, "x.gz")) for value in batch.values()] == ["a", "b"]


def test_json_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(json_values(stream(b'{"a":1}\n{"a":'), has_schemas=False))


@pytest.mark.parametrize(
    ("start", "between", "end"),
    [(b"", b"", b""), (b"[\n", b",\n", b"\n]\n"), (b"", b"\n", b"\n")],
    ids=["in one line", "array over lines", "over lines"],
)
def test_time_for_documents_grows_with_their_size_only(start: bytes, between: bytes, end: bytes) -> None:
    # It grew with the square when the rest was looked at again for each document or line.
    size = 100_000
    data = start + between.join(b'{\n"n": %d,"t": "}\\"]{"\n}' % n for n in range(size)) + end
    data = data.replace(b"\n", b"") if not start and not end else data
    values = [value for batch in json_values(stream(data), has_schemas=False) for value in batch.values()]
    found = values[0] if start else values
    assert len(found) == size
    assert (found[0], found[-1]) == ({"n": 0, "t": '}"]{'}, {"n": size - 1, "t": '}"]{'})


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        (b'{"a":2\n{"a":3}\n', "line 2"),
        (b'{"a":2}}\n', "there is a }"),
        (b'{"a":2},\n', "there is a ,"),
        (b'{"a":"x\n', "no end"),
        (b'{"a":2]\n', "serialization"),
        (b"{a:2}\n", "serialization"),
        (b"nul\n", "serialization"),
    ],
)
def test_documents_before_a_damaged_one_are_read_and_nothing_after_it(damaged: bytes, told: str) -> None:
    batches = json_values(stream(b'{"a":1}\n' + damaged + b'{"a":4}\n'), has_schemas=False)
    values: list[Any] = []
    with pytest.raises((ValueError, DataError), match=told):
        values.extend(value for batch in batches for value in batch.values())
    assert {"a": 1} in values
    assert {"a": 4} not in values


def test_separator_on_the_border_of_what_is_read_at_once() -> None:
    data = b"x" * ((1 << 20) - 1) + b"--" + b"y" * (3 << 20) + b"--z"
    values = [value for batch in bytes_values(stream(data), b"--") for value in batch.values()]
    assert [len(value) for value in values] == [(1 << 20) - 1, 3 << 20, 1]


def test_bytes_and_lines() -> None:
    (batch,) = bytes_values(stream(b"a--b----c"), b"--")
    assert (batch.schema, batch.values()) == (BYTES, [b"a", b"b", b"", b"c"])
    (batch,) = text_values(stream("ä\n\nb\n".encode()))
    assert (batch.schema, batch.values()) == (STRING, ["ä", "", "b"])
    with pytest.raises(UnicodeDecodeError):
        list(text_values(stream(b"\xff\n")))


def test_csv() -> None:
    data = b'# made by x\nid,name\n1,"a ""b"", c"\n2,\n\n3,"two\nlines"\n'
    options = CsvOptions(skip_lines=1, first_row_as_header=True, empty_is_null=True)
    (batch,) = csv_values(stream(data), options)
    assert [tuple(one.values()) for one in batch.values()] == [("1", 'a "b", c'), ("2", None), ("3", "two\nlines")]
    (batch,) = csv_values(stream(b"1;x\n"), CsvOptions(separator=";"))
    assert batch.values() == [{"column01": "1", "column02": "x"}]
    with pytest.raises(ValueError, match="line 2 has 1 fields, and the first one has 2"):
        list(csv_values(stream(b"a,b\nc\n"), CsvOptions()))
    with pytest.raises(ValueError, match="occur twice"):
        list(csv_values(stream(b"a,a\n"), CsvOptions(first_row_as_header=True)))


def test_lines_of_csv_that_are_passed_over_take_no_rows_with_them() -> None:
    (batch,) = csv_values(stream(b'"Report of May\r\nid\r\n1\r\n"2"\r\n'), CsvOptions(skip_lines=1))
    assert batch.values() == [{"column01": "id"}, {"column01": "1"}, {"column01": "2"}]
    with pytest.raises(ValueError, match="line 3 has 1 fields"):
        list(csv_values(stream(b"title\na,b\nc\n"), CsvOptions(skip_lines=1)))


def test_blank_lines_at_the_beginning_of_csv_are_no_rows() -> None:
    (batch,) = csv_values(stream(b"\n\nid\n1\n"), CsvOptions(first_row_as_header=True))
    assert batch.values() == [{"id": "1"}]
    assert list(csv_values(stream(b"\n\n"), CsvOptions())) == []


def test_orc_of_other_programs() -> None:
    sink = Sink()
    orc.write_table(pa.table({"n": [1, 2], "s": ["a", None]}), sink)
    (batch,) = OrcReader(io.BytesIO(sink.getvalue()))
    assert batch.values() == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


def test_byte_order_marks_are_no_part_of_values() -> None:
    (batch,) = csv_values(stream(b"\xef\xbb\xbfid\n1\n"), CsvOptions(first_row_as_header=True))
    assert batch.values() == [{"id": "1"}]
    (batch,) = json_values(stream(b'\xef\xbb\xbf{"a":1}\n'), has_schemas=False)
    assert batch.values() == [{"a": 1}]


def test_large_field_of_csv() -> None:
    (batch,) = csv_values(stream(b"x" * 1_000_000 + b"\n"), CsvOptions())
    assert len(batch.values()[0]["column01"]) == 1_000_000


def test_columns_with_the_same_name_are_an_error() -> None:
    sink = Sink()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), sink)
    with pytest.raises(ValueError, match="the same name"):
        list(ParquetReader(io.BytesIO(sink.getvalue()), MILLISECONDS))


def test_text_that_is_no_utf8_is_an_error_in_columns_too() -> None:
    sink = Sink()
    broken = pa.array([b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"a": broken}), sink)
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        list(ParquetReader(io.BytesIO(sink.getvalue()), MILLISECONDS))


def test_int96_timestamps_of_spark() -> None:
    sink = Sink()
    pq.write_table(
        pa.table({"at": pa.array([1_000_000], pa.timestamp("ns"))}), sink, use_deprecated_int96_timestamps=True
    )
    (batch,) = ParquetReader(io.BytesIO(sink.getvalue()), MILLISECONDS)
    assert batch.values() == [{"at": 1}]


@pytest.mark.parametrize("number", [b"1180591620717411303425", b"1e400", b"NaN"])
def test_number_of_json_that_has_no_place_in_its_type_is_an_error(number: bytes) -> None:
    with pytest.raises(DataError, match=r"out of range|Non-standard token"):
        list(json_values(stream(b'{"n":%s}\n' % number), has_schemas=False))


def test_int96_timestamps_that_do_not_fit_into_nanoseconds() -> None:
    """Year 9999 stands for no end in many tables; Arrow reads it as another year."""
    times = [253_402_300_799_999_000, 0, None, -62_135_596_800_000_000]
    nested = [[times[0]], None, [], [None, 1000]]
    table = pa.table({"at": pa.array(times, pa.timestamp("us")), "all": pa.array(nested, pa.list_(pa.timestamp("us")))})
    table = table.append_column("other", pa.array([float("nan"), 1.0, None, 2.0]))
    rows = read_int96(table, MILLISECONDS)
    assert [row["at"] for row in rows] == [None if at is None else at // 1000 for at in times]
    assert [row["all"] for row in rows] == [[253_402_300_799_999], None, [], [None, 1]]
    with pytest.raises(ValueError, match="its column at has a time that INT64 cannot count in nanoseconds"):
        read_int96(table, INTEGERS)
    fine = pa.array([1, 2, 3, 4], pa.timestamp("ns"))
    with pytest.raises(ValueError, match="its column fine has nanoseconds"):
        read_int96(table.append_column("fine", fine), MILLISECONDS)
    assert [row["fine"] for row in read_int96(pa.table({"fine": fine}), INTEGERS)] == [1, 2, 3, 4]


def read_int96(table: pa.Table, timestamps: str) -> list[Any]:
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    return [value for batch in ParquetReader(sink, timestamps) for value in batch.values()]
