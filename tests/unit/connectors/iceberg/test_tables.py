"""Keys of tables, and which tables a record goes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from airflow_connect.api.record import KafkaRecord, SinkRecord
from airflow_connect.api.schema import Schema, Type, struct
from airflow_connect.connectors.iceberg.routes import route_of, routes_of_column
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.connectors.iceberg.task import IcebergSinkTask
from airflow_connect.errors import ConfigError, DataError, IcebergError
from airflow_connect.runtime.executor.sink import coalescing
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.unit.connectors.files.shared.staging import NOW_MS
from tests.unit.connectors.files.shared.test_column_configurations import SCHEMALESS
from tests.unit.connectors.iceberg.lakes import Lake

CATALOG = {"name": "c", "topics": "t", "iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://127.0.0.1:9"}
TWO = {"iceberg.tables": "a.x,b.y"}
DYNAMIC = {"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "f"}


def config(**more: str) -> IcebergConfig:
    return IcebergConfig.from_config({**CATALOG, **{key.replace("__", "."): value for key, value in more.items()}})


def typed(*parts: dict[str, str]) -> IcebergConfig:
    return IcebergConfig.from_config({key: value for part in (CATALOG, *parts) for key, value in part.items()})


def test_keys_of_a_table_may_name_it_with_or_without_its_namespace() -> None:
    settings = typed(TWO, {
        "iceberg.tables.default-partition-by": "p", "iceberg.tables.default-commit-branch": "b0",
        "iceberg.tables.default-id-columns": "k", "iceberg.table.x.partition-by": "q",
        "iceberg.table.a.x.commit-branch": "b1",
        "iceberg.table.y.id-columns": " i , j ,", "iceberg.table.b.y.partition-by": "",
    })  # fmt: skip
    settings.check()
    x, y = settings.settings_of("a.x"), settings.settings_of("b.y")
    assert (x.partition_by, x.branch, x.id_columns, x.target) == ("q", "b1", ("k",), "a.x (branch b1)")
    assert (y.partition_by, y.branch, y.id_columns) == ("", "b0", ("i", "j"))
    assert typed(TWO).settings_of("a.x").target == "a.x"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"iceberg.table.a.x.colour": "red"}, "iceberg.table.a.x.colour"),
        ({"iceberg.table.route-regex": "x"}, "iceberg.table.route-regex"),
        ({"iceberg.table.a.z.commit-branch": "b"}, "iceberg.table.a.z.commit-branch"),
        ({"iceberg.table.a.x.route-regex": "x"}, "iceberg.table.a.x.route-regex"),
        ({"iceberg.table.a.x.route-regex": "(", "iceberg.tables.route-field": "f"}, "iceberg.table.a.x.route-regex"),
        ({"iceberg.table.a.x.route-regex": "x", "iceberg.tables.route-field": "f"}, "iceberg.table.b.y.route-regex"),
        ({"iceberg.tables": "a.x,b.y,a.x"}, "iceberg.tables"),
        ({"iceberg.tables": "x"}, "iceberg.tables"),
        ({"iceberg.tables": "a..x"}, "iceberg.tables"),
        ({"iceberg.table.y.partition-by": "day("}, "iceberg.table.y.partition-by"),
        ({"iceberg.tables.default-partition-by": "day("}, "iceberg.tables.default-partition-by"),
        ({"iceberg.tables.dynamic-pattern": "["}, "iceberg.tables.dynamic-pattern"),
    ],
)
def test_keys_without_a_meaning_are_refused_by_name(more: dict[str, str], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed(TWO, more).check()
    assert caught.value.config_path == path


@pytest.mark.parametrize(
    "more",
    [{}, {**TWO, **DYNAMIC}, {"iceberg.tables.dynamic-enabled": "true"}, {**TWO, "iceberg.tables.cdc-field": "op"},
     {**TWO, "iceberg.tables.upsert-mode-enabled": "true"}],
)  # fmt: skip
def test_combinations_without_a_meaning_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        typed(more)


def test_write_properties_of_both_connectors_are_known() -> None:
    found = typed(TWO, {
        "iceberg.table.write-props.a": "1", "iceberg.tables.write-props.b": "2", "iceberg.tables.write-props.c": "3",
        "iceberg.table.write-props.c": "4", "iceberg.tables.auto-create-props.d": "5",
    })  # fmt: skip
    found.check()
    assert found.write_properties == {"a": "1", "b": "2", "c": "3"}
    assert found.create_properties == {"d": "5"}


def test_destinations_of_a_record() -> None:
    assert tuple(typed(TWO).destinations(None)) == ("a.x", "b.y")
    routed = typed(TWO, {
        "iceberg.tables.route-field": "f", "iceberg.table.a.x.route-regex": "[a-m].*",
        "iceberg.table.b.y.route-regex": ".*y",
    })  # fmt: skip
    found = {route: tuple(routed.destinations(route)) for route in ("ay", "a", "zy", "z", "", None)}
    assert found == {"ay": ("a.x", "b.y"), "a": ("a.x",), "zy": ("b.y",), "z": (), "": (), None: ()}


def test_destinations_that_a_record_names() -> None:
    dynamic = typed(DYNAMIC, {"iceberg.tables.dynamic-pattern": r"(a|b\.c)\.[a-z]+"})
    assert [tuple(dynamic.destinations(route)) for route in ("A.Xy", "b.c.d", None)] == [("a.xy",), ("b.c.d",), ()]
    for route in ("x", "c.x", "a.x1", "a.", "a..b", "", "a.x\n", "secret.x"):
        with pytest.raises(DataError, match="not allowed"):
            dynamic.destinations(route)
    for route in ("x", ".x", "x.", "a. b", "a..b"):
        with pytest.raises(DataError, match="not allowed"):
            typed(DYNAMIC).destinations(route)


def test_routes_are_the_texts_of_java() -> None:
    value = {"t": "A", "n": 5, "b": True, "d": 1e10, "f": 1.0, "s": {"t": "x", "n": None}, "a.b": "dot"}
    routes = [route_of(value, field) for field in ("t", "n", "b", "d", "f", "s.t", "s.n", "s.x", "t.x", "none", "a.b")]
    assert routes == ["A", "5", "true", "1.0E10", "1.0", "x", None, None, None, None, None]
    for field in ("s",):
        with pytest.raises(DataError, match="names no table"):
            route_of(value, field)
    batch = pa.RecordBatch.from_pylist([value, {"t": None, "n": None, "s": None}])
    assert {field: routes_of_column(batch, field) for field in ("t", "n", "s.t", "b", "d", "s", "s.x", "none")} == {
        "t": ["A", None], "n": ["5", None], "s.t": ["x", None], "b": None, "d": None, "s": None, "s.x": None,
        "none": [None],
    }  # fmt: skip


def names(lake: Lake) -> dict[str, list[Any]]:
    catalog = lake.catalog
    tables = [".".join(name) for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
    return {name: sorted(row["n"] for row in lake.rows(name)) for name in tables}


SCHEMA = struct(("n", Schema(Type.INT64)), ("f", Schema(Type.STRING, optional=True)))


def test_each_record_goes_to_every_table_and_is_counted_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path, iceberg_tables="lake.a,lake.b,other.c")
    staged = lake.put([{"n": n} for n in range(5)], SCHEMA)
    assert names(lake) == {"lake.a": [*range(5)], "lake.b": [*range(5)], "other.c": [*range(5)]}
    assert sorted((file.role, file.records) for file in staged) == [("copy", 5), ("copy", 5), ("value", 5)]


def test_records_without_a_table_are_counted_by_reason(tmp_path: Path) -> None:
    lake = Lake(tmp_path, iceberg_tables="lake.a,lake.b", **{
        "iceberg_tables_route-field": "f", "iceberg_table_a_route-regex": "a|ab", "iceberg_table_b_route-regex": "ab|b",
    })  # fmt: skip
    routes = ["a", "b", "ab", "c", None, None]
    staged = lake.put([*({"n": n, "f": route} for n, route in enumerate(routes)), None, None], SCHEMA)
    assert names(lake) == {"lake.a": [0, 2], "lake.b": [1, 2]}
    assert sum(file.records for file in staged if file.role == "value") == 3
    left = [note for note in lake.notes if "left out" in note]
    assert left == ["2 records left out: a null value, which an append cannot show.",
                    "3 records left out: no table for their field f."]  # fmt: skip


def test_records_name_their_tables(tmp_path: Path) -> None:
    lake = Lake(tmp_path, iceberg_tables=None, **{
        "iceberg_tables_dynamic-enabled": "true", "iceberg_tables_route-field": "f",
        "iceberg_tables_dynamic-pattern": "lake[.].*",
    })  # type: ignore[arg-type]  # fmt: skip
    routes = ["lake.A", "LAKE.b", "other.c", None, "x", "lake.a"]
    lake.put([{"n": n, "f": route} for n, route in enumerate(routes)], SCHEMA)
    assert names(lake) == {"lake.a": [0, 5], "lake.b": [1]}
    assert [(offset, error.code) for offset, error in lake.refusals.errors] == [
        (2, "iceberg.route"),
        (4, "iceberg.route"),
    ]  # type: ignore[attr-defined]
    assert "1 record left out: no table for their field f." in lake.notes


def test_record_that_names_a_missing_table_is_refused_alone_if_tables_are_not_created(tmp_path: Path) -> None:
    lake = Lake(tmp_path, iceberg_tables=None, **{
        "iceberg_tables_dynamic-enabled": "true", "iceberg_tables_route-field": "f",
    })  # type: ignore[arg-type]  # fmt: skip
    lake.put([{"n": 0, "f": "lake.a"}], SCHEMA)
    lake.set(**{"iceberg_tables_auto-create-enabled": "false"})
    lake.put([{"n": n, "f": route} for n, route in enumerate(["lake.a", "lake.b", "no.c", "lake.a", "lake.b"])], SCHEMA)
    assert [(offset, error.code) for offset, error in lake.refusals.errors] == [  # type: ignore[attr-defined]
        (1, "iceberg.no_table"), (2, "iceberg.no_table"), (4, "iceberg.no_table")
    ]  # fmt: skip
    assert names(lake) == {"lake.a": [0, 0, 3]}


def test_missing_table_of_the_configuration_ends_the_run(tmp_path: Path) -> None:
    lake = Lake(tmp_path, **{"iceberg_tables_auto-create-enabled": "false"})
    with pytest.raises(IcebergError, match="auto-create-enabled") as caught:
        lake.put([{"n": 1}], SCHEMA)
    assert caught.value.code == "iceberg.no_table"
    assert list(lake.root.rglob("*.parquet")) == []


@pytest.mark.parametrize("columnar", [False, True])
def test_bad_record_among_good_ones_goes_to_the_dead_letter_queue_alone(tmp_path: Path, columnar: bool) -> None:
    values = [b'{"n":1}', b'{"n":"x"}', None, b"[1]", b'{"n":', b'{"n":2}', b"5"]
    records = [[KafkaRecord("t", 0, n, None, value, NOW_MS) for n, value in enumerate(values)]]
    letters = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}
    lake = Lake(tmp_path)
    done = lake.copy(records, columnar=columnar, config={**SCHEMALESS, **letters})
    (report,) = done.reports
    assert (done.error, report.read, report.written, report.filtered, report.dead_lettered) == ("", 7, 2, 1, 4)
    assert names(lake) == {"lake.t": [1, 2]}
    assert "1 record left out: a null value, which an append cannot show." in done.notes
    failing = lake.copy(records, columnar=columnar, config=SCHEMALESS)
    assert "DataError" in failing.error
    assert names(lake) == {"lake.t": [1, 2]}


def test_bad_record_among_many_is_found_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = IcebergSinkTask._write_records

    def counting(task: IcebergSinkTask, records: list[SinkRecord]) -> list[SinkRecord]:
        sizes.append(len(records))
        return write(task, records)

    monkeypatch.setattr(IcebergSinkTask, "_write_records", counting)
    lake = Lake(tmp_path)
    lake.put([{"n": 0}], SCHEMA)
    texts = struct(("n", Schema(Type.STRING)))
    lake.put([{"n": "x" if n == 123 else str(n)} for n in range(500)], texts)
    assert [offset for offset, _ in lake.refusals.errors] == [123]
    assert len(sizes) < 30
    assert names(lake) == {"lake.t": sorted([0, *(n for n in range(500) if n != 123)])}


@pytest.mark.parametrize("columnar", [False, True])
def test_task_that_fails_leaves_no_file(tmp_path: Path, columnar: bool) -> None:
    lake = Lake(tmp_path, iceberg_tables="lake.a,lake.b", **{"iceberg_tables_default-partition-by": "n"})
    values = [b'{"n":1}', b'{"n":2,"m":3}', b'{"n":3,"m":3,"o":4}', b'{"n":"x"}']
    records = [[KafkaRecord("t", 0, n, None, value, NOW_MS)] for n, value in enumerate(values)]
    with patch.object(coalescing, "PARTITION_RECORDS", 1), patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", 1):
        failing = lake.copy(records, columnar=columnar, config=SCHEMALESS)
    assert "does not fit table" in failing.error
    assert len(lake.table("lake.a").schema().fields) == 3
    assert list(tmp_path.rglob("*.parquet")) == []
