"""Partitions: their names, their values, and what filters find."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import VoidTransform, parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)  # fmt: skip

from airflow_connect.api.schema import Schema, Type, array, struct
from airflow_connect.api.schema import date as date_schema
from airflow_connect.api.schema import time as time_schema
from airflow_connect.api.schema import timestamp as timestamp_schema
from airflow_connect.connectors.iceberg import task as task_module
from airflow_connect.connectors.iceberg.partitions import (
    Partitioner,
    parse_partitioning,
    partition_spec,
    partition_values,
)
from airflow_connect.connectors.iceberg.types import arrow_type
from airflow_connect.errors import ConfigError, IcebergError
from tests.support.session.many_cases import check_each
from tests.unit.connectors.iceberg.lakes import TABLE, Lake

LONG, SOME_LONG, TEXT = Schema(Type.INT64), Schema(Type.INT64, optional=True), Schema(Type.STRING)
DAY_MS = 86_400_000
MICROS = [-1, 0, 1, -DAY_MS * 1000, -DAY_MS * 1000 - 1, 1_700_000_000_123_456, None, -3_600_000_000]
FLOATS = [float("nan"), 0.0, -0.0, 1.5, None, float("-inf")]
TRANSFORMS = ("identity", "year", "month", "day", "hour", "bucket[16]", "truncate[3]", "void")
VALUES: list[tuple[Any, list[Any]]] = [
    (IntegerType(), [-(2**31) + 3, -1, 0, 5, 2**31 - 1, None, -10, -11]),
    (LongType(), [-(2**63) + 3, -1, 0, 5, 2**63 - 1, None, -10, -11]),
    (FloatType(), FLOATS),
    (DoubleType(), FLOATS),
    (BooleanType(), [True, False, None]),
    (StringType(), ["", "a", "äöüx", "😀😀😀😀", None, "abcdefgh"]),
    (BinaryType(), [b"", b"\xff\x00abc", None]),
    (FixedType(3), [b"abc", b"\xff\xff\xff", None]),
    (UUIDType(), [UUID(int=5), UUID(int=2**127), None]),
    (DecimalType(9, 2), [Decimal("-1.23"), Decimal("0.00"), Decimal("9999999.99"), None, Decimal("-0.01")]),
    (DecimalType(38, 10), [Decimal("-1.2300000000"), Decimal("9" * 28 + ".0000000000"), None]),
    (DateType(), [-719162, -1, 0, 1, 19000, 2932896, None, -365, -366]),
    (TimeType(), [0, 1, DAY_MS * 1000 - 1, None]),
    (TimestampType(), MICROS),
    (TimestamptzType(), MICROS),
]  # fmt: skip


def divided(kind: Any, transform: Any, values: list[Any]) -> list[Any]:
    """The partition of each value."""
    schema = IcebergSchema(NestedField(1, "x", kind, required=False))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    plain: Any = pa.array([v.bytes if isinstance(v, UUID) else v for v in values],
                          pa.binary(16) if isinstance(kind, UUIDType) else arrow_type(kind))  # fmt: skip
    column = pa.ExtensionArray.from_storage(pa.uuid(), plain) if isinstance(kind, UUIDType) else plain
    batch = pa.RecordBatch.from_arrays([column], names=["x"])
    found: list[Any] = [None] * len(values)
    seen = 0
    for texts, rows in Partitioner(spec, schema).divide(batch):
        for row in range(len(values)) if rows is None else rows:
            found[row], seen = partition_values(texts, spec, schema)[0], seen + 1
    assert seen == len(values)
    return found


def test_partition_of_each_value_is_what_the_library_computes() -> None:
    cases = [(kind, parse_transform(name), values) for kind, values in VALUES for name in TRANSFORMS]

    def check(case: tuple[Any, Any, list[Any]]) -> None:
        kind, transform, values = case
        if not transform.can_transform(kind):
            return
        of_one: Callable[[Any], Any] = transform.transform(kind)
        for value, found in zip(values, divided(kind, transform, values), strict=True):
            wanted = None if isinstance(transform, VoidTransform) else of_one(value)
            if isinstance(wanted, UUID):
                wanted = wanted.bytes
            if isinstance(wanted, float):
                assert (math.isnan(found), math.copysign(1, found)) == (math.isnan(wanted), math.copysign(1, wanted))
                assert math.isnan(wanted) or found == wanted
            else:
                assert (found, type(found)) == (wanted, type(wanted))

    check_each(cases, lambda case: f"{case[0]} {case[1]}", check)


def test_years_and_months_beyond_9999() -> None:
    assert divided(DateType(), parse_transform("year"), [3_000_000, -800_000]) == [8213, -2191]
    assert divided(TimestamptzType(), parse_transform("month"), [253_402_300_800_000_000]) == [96360]


def test_many_columns_of_many_values_never_share_a_partition() -> None:
    rows, names = 20_000, [f"c{n}" for n in range(6)]
    schema = IcebergSchema(*(NestedField(n + 1, name, LongType(), required=False) for n, name in enumerate(names)))
    spec = PartitionSpec(*(PartitionField(n + 1, 1000 + n, parse_transform("identity"), f"p{n}") for n in range(6)))
    batch = pa.RecordBatch.from_arrays([pa.array(range(n, rows + n)) for n in range(6)], names=names)
    found = list(Partitioner(spec, schema).divide(batch))
    assert (len(found), {len(chosen) for _, chosen in found}) == (rows, {1})
    texts, (row,) = found[7]
    assert [partition_values(texts, spec, schema)[n] for n in range(6)] == [row + n for n in range(6)]


def test_empty_batch_has_no_partition() -> None:
    schema = IcebergSchema(NestedField(1, "x", LongType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, parse_transform("identity"), "x"))
    assert (
        list(Partitioner(spec, schema).divide(pa.RecordBatch.from_arrays([pa.array([], pa.int64())], names=["x"])))
        == []
    )


def test_texts_and_their_names() -> None:
    text = "a, Year(b),months(c) , day(s.d),hours(e),bucket( f , 16 ),truncate(g,2)"
    assert [(c.column, c.transform, c.name) for c in parse_partitioning(text, "k")] == [
        ("a", "identity", "a"), ("b", "year", "b_year"), ("c", "month", "c_month"), ("s.d", "day", "s.d_day"),
        ("e", "hour", "e_hour"), ("f", "bucket[16]", "f_bucket"), ("g", "truncate[2]", "g_trunc"),
    ]  # fmt: skip
    assert parse_partitioning("  ", "k") == ()


@pytest.mark.parametrize(
    "text",
    ["a,,b", "a b", "day()", "day(a,b)", "week(a)", "bucket(a)", "bucket(a,0)", "bucket(a,-1)", "bucket(a,x)", "(a)",
     "bucket(a,2147483648)", "truncate(a,)", "day(a", "a,", "a,a", "bucket(a,4),bucket(a,8)", "day(a),days(a)",
     "day(a),hour(a)"],
)  # fmt: skip
def test_text_that_says_nothing_clear_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_partitioning(text, "the.key")
    assert caught.value.config_path == "the.key"


@pytest.mark.parametrize("text", ["none", "day(a)", "l", "l.element", "s", "truncate(b, 2)", "day(t)"])
def test_columns_that_cannot_partition_are_refused(text: str) -> None:
    schema = IcebergSchema(
        NestedField(1, "a", LongType()), NestedField(2, "l", ListType(3, LongType())),
        NestedField(4, "b", BooleanType()),
        NestedField(5, "t", DateType()), NestedField(6, "t_day", LongType()),
    )  # fmt: skip
    with pytest.raises(IcebergError, match="cannot be partitioned by"):
        partition_spec(parse_partitioning(text, "k"), schema)


def test_table_with_a_partition_column_that_is_gone_is_refused_unless_it_is_void() -> None:
    schema = IcebergSchema(NestedField(1, "a", LongType(), required=False))
    with pytest.raises(IcebergError, match="no column has the id 9"):
        Partitioner(PartitionSpec(PartitionField(9, 1000, parse_transform("identity"), "gone")), schema)
    gone = Partitioner(PartitionSpec(PartitionField(9, 1000, VoidTransform(), "gone")), schema)
    assert [texts for texts, _ in gone.divide(pa.RecordBatch.from_arrays([pa.array([1, 2])], names=["a"]))] == [(None,)]


ROWS = [
    {"n": n, "t": None if n % 7 == 3 else (n - 5) * 17_000_000_001, "d": None if n % 5 == 1 else (n - 5) * 45,
     "x": [float("nan"), 0.5, None, -0.0, 0.0][n % 5], "s": None if n % 4 == 1 else {"q": n % 3, "o": n},
     "text": "äbc"[: n % 4] + "z" * (n % 3) * 20, "time": n * 1000}
    for n in range(14)
]  # fmt: skip
ROW = struct(
    ("n", LONG), ("t", timestamp_schema(optional=True)), ("d", date_schema(optional=True)),
    ("x", Schema(Type.FLOAT64, optional=True)),
    ("s", Schema(Type.STRUCT, optional=True, fields=struct(("q", LONG), ("o", SOME_LONG)).fields)), ("text", TEXT),
    ("time", time_schema()),
)  # fmt: skip
FILTERS: list[tuple[str, Callable[[Any], bool]]] = [
    ("n < 0", lambda row: False),
    ("n >= 10", lambda row: row["n"] >= 10),
    ("n = 7", lambda row: row["n"] == 7),
    ("t < '1969-12-31T12:00:00+00:00'", lambda row: row["t"] is not None and row["t"] < -DAY_MS // 2),
    ("t >= '1971-01-01T00:00:00+00:00'", lambda row: row["t"] is not None and row["t"] >= 365 * DAY_MS),
    ("t is null", lambda row: row["t"] is None),
    ("d = '1970-02-15'", lambda row: row["d"] == 45),
    ("d < '1970-01-01'", lambda row: row["d"] is not None and row["d"] < 0),
    ("d is null", lambda row: row["d"] is None),
    ("x is nan", lambda row: row["x"] is not None and row["x"] != row["x"]),
    ("x is not nan", lambda row: row["x"] is not None and row["x"] == row["x"]),
    ("x = 0.5", lambda row: row["x"] == 0.5),
    ("x > 0.1", lambda row: row["x"] is not None and row["x"] > 0.1),
    ("x is null", lambda row: row["x"] is None),
    ("s.q = 2", lambda row: row["s"] is not None and row["s"]["q"] == 2),
    ("s.o is null", lambda row: row["s"] is None),
    ("s.q > 1", lambda row: row["s"] is not None and row["s"]["q"] > 1),
    ("text = 'äb'", lambda row: row["text"] == "äb"),
    ("text >= 'zz'", lambda row: row["text"] >= "zz"),
    ("text = ''", lambda row: row["text"] == ""),
]  # fmt: skip
PARTITIONINGS = (
    "", "n", "bucket(n,4),n", "truncate(n,10)", "year(t)", "month(t),day(d)", "day(t)", "hour(t)", "t", "d",
    "month(d),bucket(d,3)", "x", "s.q", "s.o,day(t)", "bucket(s.q,2)", "text",
    "truncate(text,2),bucket(text,3)", "time",
)  # fmt: skip


def test_filters_find_the_rows_of_every_partitioning(tmp_path: Path) -> None:
    names = {text: f"lake.t{number}" for number, text in enumerate(PARTITIONINGS)}
    lake = Lake(tmp_path, iceberg_tables=",".join(names.values()))
    for text, name in names.items():
        lake.set(**{f"iceberg_table_{name.replace('.', '_')}_partition-by": text})
    lake.put(ROWS, ROW)
    assert lake.refusals.errors == []
    tables = {text: lake.table(name) for text, name in names.items()}

    rows_of: dict[str, list[int]] = {}

    def check(case: tuple[str, tuple[str, Callable[[Any], bool]]]) -> None:
        # By the files that are left: what readers make of their rows is not the sink's.
        text, (condition, holds) = case
        paths = [task.file.file_path.removeprefix("file://") for task in tables[text].scan(condition).plan_files()]
        for path in paths:
            if path not in rows_of:
                rows_of[path] = pq.read_table(path, columns=["n"])["n"].to_pylist()
        found = {n for path in paths for n in rows_of[path]}
        assert {row["n"] for row in ROWS if holds(row)} <= found
        pruned[text] += len(ROWS) - len(found)

    pruned: Counter[str] = Counter()
    check_each(itertools.product(PARTITIONINGS, FILTERS), lambda case: f"{case[0]!r}: {case[1][0]}", check)
    assert all(pruned[text] for text in PARTITIONINGS)
    for text in ("n", "s.o,day(t)", "x"):
        assert len(list(tables[text].scan().plan_files())) == len({repr(row) for row in PARTITIONS[text]})


PARTITIONS: dict[str, list[Any]] = {
    "n": [row["n"] for row in ROWS],
    "s.o,day(t)": [(row["s"] and row["s"]["o"], row["t"] if row["t"] is None else row["t"] // DAY_MS) for row in ROWS],  # type: ignore[index,operator]
    "x": [row["x"] for row in ROWS],
}


def test_dates_beyond_9999_are_written_without_bounds(tmp_path: Path) -> None:
    lake = Lake(tmp_path, **{"iceberg_tables_default-partition-by": "d,year(t)"})
    late = 253_402_300_800_000  # 10000-01-01, in milliseconds.
    schema = struct(("n", LONG), ("d", date_schema()), ("t", timestamp_schema()))
    lake.put([{"n": 1, "d": 2_932_897, "t": late}, {"n": 2, "d": 0, "t": 0}], schema)
    table = lake.table()
    assert table.scan(selected_fields=("n",)).to_arrow()["n"].to_pylist() in ([1, 2], [2, 1])
    assert table.scan(row_filter="t > '2020-01-01T00:00:00+00:00'", selected_fields=("n",)).to_arrow().num_rows == 1
    assert table.scan(row_filter="d < '1970-01-02'", selected_fields=("n",)).to_arrow()["n"].to_pylist() == [2]
    files = {task.file.record_count: sorted(task.file.lower_bounds) for task in table.scan().plan_files()}
    assert files == {1: [1]} or files == {1: [1, 2, 3]}


def test_void_partitions_of_required_columns(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    schema = IcebergSchema(NestedField(1, "n", LongType(), required=True))
    lake.create(schema, partition_spec=PartitionSpec(PartitionField(1, 1000, VoidTransform(), "n_void")))
    lake.put([{"n": 1}, {"n": 2}], struct(("n", LONG)))
    assert sorted(row["n"] for row in lake.rows()) == [1, 2]


def test_many_partitions_need_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path, **{"iceberg_tables_default-partition-by": "p"})
    monkeypatch.setattr(task_module, "MEMORY_BYTES", 1_000_000)
    held: list[int] = []
    keep_bounded = task_module.IcebergSinkTask._keep_memory_bounded

    def watch(task: Any) -> None:
        keep_bounded(task)
        held.append(sum(file.buffered_bytes for table in task._opened[1] for file in table.files.values()))

    monkeypatch.setattr(task_module.IcebergSinkTask, "_keep_memory_bounded", watch)
    staged = lake.put([{"p": n % 200, "text": "x" * 1000} for n in range(4000)], struct(("p", LONG), ("text", TEXT)))
    assert (len(staged), sum(file.records for file in staged), max(held) <= 1_000_000) == (200, 4000, True)
    assert lake.table().scan(row_filter="p = 77").to_arrow().num_rows == 20
    assert lake.table(TABLE).current_snapshot().summary["changed-partition-count"] == "200"  # type: ignore[union-attr,index]


def test_lists_beside_partitions(tmp_path: Path) -> None:
    lake = Lake(tmp_path, **{"iceberg_tables_default-partition-by": "p"})
    schema = struct(("p", LONG), ("l", array(SOME_LONG)), ("s", struct(("q", array(TEXT)))))
    rows = [{"p": n % 3, "l": [n, None][: n % 3], "s": {"q": [str(n)] * (n % 4)}} for n in range(20)]
    lake.put(rows, schema)
    assert sorted(lake.rows(), key=repr) == sorted(rows, key=repr)
