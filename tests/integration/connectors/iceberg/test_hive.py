"""The Iceberg sink with its catalog in a Hive metastore: compare and set, no locks."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from airflow_connect.connectors.iceberg.hive_catalog import LOCKS, CompareAndSetCatalog
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import IcebergError, UnavailableError
from airflow_connect.runtime import crash_points
from tests.devstack.hive_metastore import HiveMetastore
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import TopicProducer
from tests.support.steps import Crashed, Steps

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

NUMBERS = Schema(NestedField(1, "n", LongType(), required=False))


@pytest.fixture
def sink(
    kafka: KafkaBroker,
    metastore: HiveMetastore,
    tmp_path: Path,
    make_topic: Callable[..., str],
    produce: TopicProducer,
) -> IcebergSink:
    made = iceberg_sink(kafka, tmp_path, make_topic(2))
    made.catalog_properties = {"type": "hive", "uri": metastore.uri, "warehouse": f"file://{tmp_path}/warehouse"}
    made.config |= {"iceberg.tables": f"lake_{uuid.uuid4().hex[:8]}.t"}
    produce(made.topic, numbered(0, 10, 2)[0])
    return made


@pytest.fixture
def catalog(sink: IcebergSink) -> CompareAndSetCatalog:
    return CompareAndSetCatalog("x", **sink.properties)


def numbers(sink: IcebergSink, catalog: CompareAndSetCatalog) -> list[int]:
    table = catalog.load_table(sink.config["iceberg.tables"] or "")
    return sorted(table.scan().to_arrow()["n"].to_pylist())


def test_table_is_created_filled_and_evolved(
    sink: IcebergSink, catalog: CompareAndSetCatalog, produce: TopicProducer
) -> None:
    sink.run()
    produce(sink.topic, [(0, None, '{"n": 10, "more": "text"}')])
    sink.run()
    table = catalog.load_table(sink.config["iceberg.tables"] or "")

    assert numbers(sink, catalog) == list(range(11))
    assert (table.schema().column_names, table.properties[LOCKS]) == (["n", "more"], "false")


@pytest.mark.parametrize("point", [crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED])
def test_run_that_died_is_committed_once(
    sink: IcebergSink, catalog: CompareAndSetCatalog, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    Steps(monkeypatch).crash(point, 0)
    with pytest.raises(Crashed):
        sink.try_run()
    report = sink.run()

    assert report.recovered_run_id
    assert numbers(sink, catalog) == list(range(10))


def test_commit_that_is_late_is_refused(
    sink: IcebergSink, catalog: CompareAndSetCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the metadata of a commit and its request, another writer commits."""
    sink.run()
    name = sink.config["iceberg.tables"] or ""
    table = catalog.load_table(name)
    real, waiting = Client.alter_table_with_environment_context, [1]

    def frozen(self: Client, *arguments: object) -> object:
        if waiting:
            waiting.clear()
            CompareAndSetCatalog("y", **sink.properties).load_table(name).append(table.scan(limit=1).to_arrow())
        return real(self, *arguments)

    monkeypatch.setattr(Client, "alter_table_with_environment_context", frozen)
    with pytest.raises(CommitFailedException), table.transaction() as change:
        change.set_properties(late="true")

    now = catalog.load_table(name)
    assert ("late" in now.properties, len(now.scan().to_arrow())) == (False, 11)


def test_answer_that_is_lost_is_looked_up(
    sink: IcebergSink, catalog: CompareAndSetCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = Client.alter_table_with_environment_context, [1]

    def cut(self: Client, *arguments: object) -> None:
        real(self, *arguments)
        if lost:
            lost.pop()
            raise TimeoutError("read timed out")

    monkeypatch.setattr(Client, "alter_table_with_environment_context", cut)
    sink.run()

    assert (lost, numbers(sink, catalog)) == ([], list(range(10)))


def test_table_whose_writers_take_locks_is_refused(sink: IcebergSink, catalog: CompareAndSetCatalog) -> None:
    name = sink.config["iceberg.tables"] or ""
    catalog.create_namespace(name.split(".")[0])
    catalog.create_table(name, NUMBERS, properties={"format-version": "2"})
    refused = sink.try_run()
    own = {**sink.config, "iceberg.tables.auto-create-props.engine.hive.lock-enabled": "true"}
    sink.config = {**own, "iceberg.tables": f"{name}2"}
    too = sink.try_run()

    for error in (refused.error, too.error):
        assert error is not None
        assert error["code"] == "iceberg.hive_locks"
        assert f"{LOCKS}=false" in error["suggestion"]
    assert f"{name}2" not in {".".join(one) for one in catalog.list_tables(name.split(".")[0])}


def test_metastore_that_does_not_compare_is_refused(
    sink: IcebergSink, catalog: CompareAndSetCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Client.alter_table_with_environment_context

    def ignore(self: Client, database: str, name: str, table: object, context: object) -> None:
        context.properties = {}  # type: ignore[attr-defined]
        real(self, database, name, table, context)

    monkeypatch.setattr(Client, "alter_table_with_environment_context", ignore)
    catalog.create_namespace(namespace := f"probed_{uuid.uuid4().hex[:8]}")
    with pytest.raises(IcebergError, match="could overwrite"):
        catalog.check_compare_and_set(namespace)
    with catalog._client as client:
        assert client.get_all_tables(namespace) == []


def test_metastore_that_does_not_answer_is_named(sink: IcebergSink) -> None:
    here = {**sink.properties, "uri": "thrift://127.0.0.1:1,thrift://127.0.0.1:2"}
    with (
        pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1.*127\.0\.0\.1:2"),
        contextlib.closing(CompareAndSetCatalog("x", **here)) as nobody,
    ):
        nobody.list_namespaces()


def test_second_metastore_is_used_if_the_first_is_away(sink: IcebergSink) -> None:
    both = {**sink.properties, "uri": f"thrift://127.0.0.1:1,{sink.properties['uri']}"}
    assert ("default",) in CompareAndSetCatalog("x", **both).list_namespaces()


def test_metastore_that_refuses_a_column_is_asked_once(
    sink: IcebergSink, produce: TopicProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its default: `hive.metastore.disallow.incompatible.col.type.changes=true`."""
    produce(sink.topic, [(0, None, '{"s": {"a": 1}}')])
    sink.run()
    real, asked = Client.alter_table_with_environment_context, [0]

    def count(self: Client, *arguments: object) -> None:
        asked[0] += 1
        real(self, *arguments)

    monkeypatch.setattr(Client, "alter_table_with_environment_context", count)
    produce(sink.topic, [(0, None, '{"s": {"a": 1, "b": 2}}')])
    refused = sink.try_run()

    assert refused.error is not None
    assert (refused.error["code"], refused.error["retriable"]) == ("iceberg.hive_columns", False)
    assert "disallow.incompatible.col.type.changes=false" in refused.error["suggestion"]
    assert asked == [2], "the trial of the preflight, and the change"


@pytest.mark.parametrize("is_new", [True, False])
def test_field_of_a_struct_that_the_metastore_could_not_read_is_an_error_of_its_record(
    sink: IcebergSink, catalog: CompareAndSetCatalog, produce: TopicProducer, is_new: bool
) -> None:
    """It accepts the column, and then refuses each later change of the table."""
    if not is_new:
        sink.run()
    produce(
        sink.topic, [(0, None, '{"n": 10, "h": {"content-type": "x"}}'), (0, None, '{"n": 11, "h": {"a b.c_1": 1}}')]
    )
    refused = sink.try_run()
    report = sink.run(errors_tolerance="all")

    assert refused.error is not None
    assert refused.error["code"] == "iceberg.hive_names"
    assert "fields in structs: content-type." in refused.error["message"]
    assert report.records == (11 if is_new else 1)
    assert numbers(sink, catalog) == [*range(10), 11]


def test_long_description_of_a_column_is_whole_in_the_table(
    sink: IcebergSink, catalog: CompareAndSetCatalog, produce: TopicProducer, make_topic: Callable[..., str]
) -> None:
    sink.topic = make_topic(1)
    text = "ä" * 300
    field = {"field": "n", "type": "int64", "optional": True, "doc": text}
    produce(sink.topic, [(0, None, json.dumps({"schema": {"type": "struct", "fields": [field]}, "payload": {"n": 1}}))])
    sink.run(value_converter_schemas_enable="true", value_converter="org.apache.kafka.connect.json.JsonConverter")
    name = sink.config["iceberg.tables"] or ""
    with catalog._client as client:
        (column,) = client.get_table(*name.split(".")).sd.cols

    assert [one.doc for one in catalog.load_table(name).schema().fields] == [text]
    assert column.comment == "ä" * 253 + "..."


def test_database_whose_creation_loses_a_race_keeps_its_folder(
    metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metastore deletes the folder that it has made for the loser, with the tables of the winner."""
    names = [f"race_{uuid.uuid4().hex[:8]}" for _ in range(6)]
    catalog = CompareAndSetCatalog("x", type="hive", uri=metastore.uri)
    made_before: list[bool] = []
    probes: list[str] = []

    def create_database(client: Client, database: object) -> None:
        if (name := database.name).startswith("race_"):  # type: ignore[attr-defined]
            made_before.append((metastore.warehouse / f"{name}.db").is_dir())
        else:
            probes.append(name)
        original(client, database)

    original = Client.create_database
    monkeypatch.setattr(Client, "create_database", create_database)

    def table_in(name: str, number: int) -> Path:
        catalog.create_namespace_if_not_exists(name)
        table = catalog.create_table(f"{name}.t{number}", NUMBERS)
        return Path("/" + table.metadata_location.removeprefix("file:").lstrip("/"))

    for name in names:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(table_in, [name] * 4, range(4)))
        assert [path.is_file() for path in found] == [True] * 4
    assert set(made_before) == {True}
    # Of this test: others use the same metastore.
    assert probes
    assert not {name for (name,) in catalog.list_namespaces()}.intersection(probes)
    assert not [name for name in probes if list(metastore.warehouse.glob(f"{name}*"))]
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(names[0])


def test_database_may_have_a_folder_of_its_own(metastore: HiveMetastore, tmp_path: Path) -> None:
    name = f"elsewhere_{uuid.uuid4().hex[:8]}"
    catalog = CompareAndSetCatalog("x", type="hive", uri=metastore.uri)
    catalog.create_namespace(name, {"location": f"file://{tmp_path}/own"})

    assert (tmp_path / "own").is_dir()
    assert not (metastore.warehouse / f"{name}.db").exists()
    assert catalog.load_namespace_properties(name)["location"].endswith(f"{tmp_path}/own")
