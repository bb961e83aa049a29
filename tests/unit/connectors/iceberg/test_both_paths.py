"""Two speeds, one meaning: record by record or in columns, the same tables."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)  # fmt: skip

from airflow_connect.api.record import KafkaRecord
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages, protobuf_messages
from tests.unit.connectors.files.shared.staging import NOW_MS, without_dates
from tests.unit.connectors.files.shared.test_column_configurations import (
    DROP_EVEN,
    SCHEMALESS,
    THREE_STEPS,
    WITH_SCHEMA,
    batches,
)  # fmt: skip
from tests.unit.connectors.files.shared.test_columns import ODD, TEXTS
from tests.unit.connectors.iceberg.lakes import TABLE, Copied, Lake

OTHER = "lake.other"
# An empty list has a column only from the batch on that has an element: `test_inferred.py`.
_PLAIN = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1)},
    optional={
        "name": st.text("abc", max_size=3) | st.none(),
        "ok": st.booleans(),
        "list": st.lists(st.integers(0, 9), min_size=1),
    },
).map(lambda value: json.dumps(value).encode())
_UNTYPED = (b"{}", b'{"id":null}', b'{"id":{}}')
KINDS: dict[str, tuple[dict[str, str], st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "json-schema": (WITH_SCHEMA, TEXTS, ODD | st.just(b"\xff\xfe")),
    "json": (SCHEMALESS, _PLAIN, st.sampled_from([None, b"[1]", b"1", b"{", *_UNTYPED])),
    "avro": (avro_messages.CONVERTER, avro_messages.FIRST, avro_messages.BROKEN),
    "avro-evolving": (
        avro_messages.CONVERTER,
        avro_messages.FIRST | avro_messages.SECOND,
        avro_messages.BROKEN,
    ),
    "protobuf": (
        protobuf_messages.CONVERTER,
        protobuf_messages.FIRST | protobuf_messages.SECOND,
        protobuf_messages.BROKEN,
    ),
}
_INNER = StructType(
    NestedField(100, "n", LongType(), required=False), NestedField(101, "m", LongType(), required=False)
)  # fmt: skip
_COLUMNS: dict[str, list[Any]] = {
    "id": [LongType(), IntegerType(), StringType(), DecimalType(12, 2), DoubleType(), TimestamptzType(), TimeType()],
    "name": [StringType(), LongType(), DoubleType(), BooleanType(), DateType()],
    "ok": [BooleanType(), StringType()],
    "ratio": [DoubleType(), FloatType(), LongType()],
    "small": [IntegerType(), LongType(), FloatType()],
    "day": [DateType()],
    "at": [TimestamptzType(), TimestampType()],
    "price": [DecimalType(9, 2), DecimalType(38, 4), DecimalType(5, 1)],
    "inner": [_INNER],
    "list": [ListType(102, StringType(), element_required=False)],
}  # fmt: skip
_PARTITIONS = ("id", "bucket[3] id", "truncate[2] name", "day at", "ok", "n", "void id")


@st.composite
def tables(draw: st.DrawFn) -> tuple[IcebergSchema, PartitionSpec] | None:
    """A table that is there before, or none."""
    names = draw(st.none() | st.lists(st.sampled_from(sorted(_COLUMNS)), unique=True, min_size=1))
    if names is None:
        return None
    kinds = [draw(st.sampled_from(_COLUMNS[name])) for name in names]
    required = draw(st.sampled_from([None, None, None, *names]))
    fields = [
        NestedField(n + 1, name, kind, required=name == required)
        for n, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    schema = IcebergSchema(*fields)
    parts = []
    for text in draw(st.lists(st.sampled_from(_PARTITIONS), unique=True, max_size=2)):
        transform, _, name = text.rpartition(" ")
        source = next((f for f in (*fields, *_INNER.fields) if f.name == name), None)
        made: Any = parse_transform(transform or "identity")
        if source is None or (name == "n" and "inner" not in names) or not made.can_transform(source.field_type):
            continue
        parts.append(PartitionField(source.field_id, 1000 + len(parts), made, f"{name}_{len(parts)}_p"))
    return schema, PartitionSpec(*parts)


CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "iceberg.tables.evolve-schema-enabled": st.sampled_from(["true", "false"]),
        "iceberg.tables.schema-force-optional": st.sampled_from(["true", "false"]),
        "iceberg.tables.schema-case-insensitive": st.sampled_from(["true", "false"]),
        "iceberg.tables.default-partition-by": st.sampled_from(["id", "bucket(id,3)", "ok", "truncate(name,1)"]),
        "iceberg.tables.default-id-columns": st.sampled_from(["id"]),
        "errors.tolerance": st.sampled_from(["all", "all", "none"]),
        "errors.deadletterqueue.topic.name": st.just("letters"),
    },
)
ROUTES = st.sampled_from(
    [
        {},
        {},
        {"iceberg.tables": f"{TABLE},{OTHER}"},
        *(
            {
                "iceberg.tables": f"{TABLE},{OTHER}",
                "iceberg.tables.route-field": field,
                f"iceberg.table.{TABLE}.route-regex": "[^a-f]*|.*[13579]",
                f"iceberg.table.{OTHER}.route-regex": "[^x]*|true",
            }
            for field in ("name", "id", "ok", "inner.n", "ratio", "nothing")
        ),
        {"iceberg.tables": None, "iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "name"},
    ]
)
STEPS: st.SearchStrategy[dict[str, str]] = st.sampled_from([{}, {}, THREE_STEPS, DROP_EVEN])


@contextmanager
def lake_of(config: dict[str, Any], table: tuple[IcebergSchema, PartitionSpec] | None) -> Iterator[Lake]:
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        lake.config = {key: value for key, value in {**lake.config, **config}.items() if value is not None}
        if table is not None:
            for name in (TABLE, OTHER):
                lake.create(table[0], name, partition_spec=table[1])
        yield lake


def content(lake: Lake, *, with_statistics: bool) -> Any:
    """The schema and the rows of each table; with `with_statistics`, what manifests say of each file."""
    found: dict[str, Any] = {}
    catalog = lake.catalog
    for namespace in catalog.list_namespaces():
        for name in catalog.list_tables(namespace):
            table = catalog.load_table(name)
            rows: list[str] = []
            files: list[str] = []
            for task in table.scan().plan_files():
                file = task.file
                read = pq.read_table(file.file_path.removeprefix("file://"))
                # Files of one run may have different columns.
                columns = {
                    column: values.cast(without_dates(values.type)).to_pylist()
                    for column, values in zip(read.schema.names, read.columns, strict=True)
                }
                rows += [
                    repr(sorted((k, v[row]) for k, v in columns.items() if v[row] is not None))
                    for row in range(read.num_rows)
                ]
                about = (file.value_counts, file.null_value_counts, file.lower_bounds, file.upper_bounds)
                told = [sorted((found or {}).items()) for found in about]
                files.append(repr([file.partition, file.record_count, file.spec_id, told]))
            found[".".join(name)] = (str(table.schema().fields), sorted(rows), sorted(files) if with_statistics else [])
    return found


def counts(done: Copied) -> Any:
    return done.error, [
        (report.read, report.written, report.filtered, report.dead_lettered, report.commit_offset)
        for report in done.reports
    ]


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # To shrink an example takes minutes.
)
@given(data=st.data())
def test_any_configuration_makes_the_same_tables_on_both_paths(kind: str, data: st.DataObject) -> None:
    converter, values, broken = KINDS[kind]
    config = {**converter, **data.draw(CONFIGS), **data.draw(ROUTES), **data.draw(STEPS)}
    table = data.draw(tables())
    is_inferred = kind == "json"
    if is_inferred and table is None:  # Where a table is made from values, it matters which come together.
        broken = broken.filter(lambda value: value not in _UNTYPED)
        config["iceberg.tables.evolve-schema-enabled"] = "true"
    records = data.draw(batches(values, broken, data.draw(st.sampled_from([5, 30, 10**6]))))
    smallest = data.draw(st.sampled_from([1, 4]))
    with_statistics = kind in ("json-schema", "avro")
    found = []
    registry = protobuf_messages if kind == "protobuf" else avro_messages
    with registry.known_schemas(), patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", smallest):
        for columnar in (False, True):
            with lake_of(config, table) as lake:
                done = lake.copy(records, columnar=columnar, config={})
                made = content(lake, with_statistics=with_statistics)
                notes = sorted(done.notes)
                if done.error:  # A failed run may have added columns already.
                    made = {}
                if is_inferred:  # Columns come in the order in which values need them.
                    made, notes = {name: rows for name, (_, rows, _) in made.items()}, []
                found.append((counts(done), done.dead_letters, notes, made))
    for one, other in zip(found[1], found[0], strict=True):
        assert one == other


def test_records_with_a_schema_go_in_columns(tmp_path: Path) -> None:
    values = [
        json.dumps({"id": n, "ok": n % 2 == 0, "name": f"n{n % 7}", "at": n, "inner": {"n": n}, "list": ["x"]}).encode()
        for n in range(2000)
    ]
    records = [[KafkaRecord("t", 0, n, None, value, NOW_MS) for n, value in enumerate(values)]]
    found = []
    for columnar in (False, True):
        lake = Lake(tmp_path / str(columnar), **{"iceberg_tables_default-partition-by": "bucket(id,4),hour(at)"})
        done = lake.copy(records, columnar=columnar, config=WITH_SCHEMA)
        assert (done.error, done.in_columns) == ("", 2000 if columnar else 0)
        found.append(content(lake, with_statistics=True))
    assert found[1] == found[0]
    assert len(found[0][TABLE][2]) == 4


def test_values_among_nulls_go_in_columns_and_the_report_counts_the_nulls(tmp_path: Path) -> None:
    values = [None if n % 4 == 1 else json.dumps({"id": n, "ok": True, "at": n}).encode() for n in range(1000)]
    records = [[KafkaRecord("t", 0, n, None, value, NOW_MS) for n, value in enumerate(values)]]
    gone = {
        "transforms": "drop", "transforms.drop.type": "Filter", "transforms.drop.predicate": "gone",
        "predicates": "gone", "predicates.gone.type": "RecordIsTombstone",
    }  # fmt: skip
    for chain, notes in (({}, ("250 records left out: a null value, which an append cannot show.",)), (gone, ())):
        found = []
        for columnar in (False, True):
            lake = Lake(tmp_path / f"{columnar}-{len(chain)}")
            done = lake.copy(records, columnar=columnar, config={**WITH_SCHEMA, **chain})
            assert (done.error, done.in_columns) == ("", 1000 if columnar else 0)
            assert tuple(note for note in done.notes if "left out" in note) == notes
            found.append((counts(done), content(lake, with_statistics=True)))
        assert found[1] == found[0]
        assert found[0][0][1] == [(1000, 750, 250, 0, 1000)]


@pytest.mark.parametrize("evolves", ["true", "false"])
@pytest.mark.parametrize("chain", [{}, DROP_EVEN], ids=["plain", "dropping"])
def test_values_without_a_schema_are_put_together_as_record_by_record(
    tmp_path: Path, chain: dict[str, str], evolves: str
) -> None:
    """A table that does not evolve has the fields of the records that were written together first."""
    values = [json.dumps({"id": n, **({"late": n} if n >= 100 else {})}).encode() for n in range(300)]
    values[0:40:2] = [b"{}"] * 20
    records = [[KafkaRecord("t", 0, n, None, value, NOW_MS) for n, value in enumerate(values)]]
    found = []
    for columnar in (False, True):
        lake = Lake(tmp_path / str(columnar), **{"iceberg_tables_evolve-schema-enabled": evolves})
        done = lake.copy(records, columnar=columnar, config={**SCHEMALESS, **chain})
        assert (done.error, done.in_columns) == ("", 0)
        found.append((counts(done), sorted(done.notes), content(lake, with_statistics=True)))
    assert found[1] == found[0]
    assert "late" in found[0][2][TABLE][0]
