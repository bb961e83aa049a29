"""Every example is one that works: configurations validate, documents load, Python compiles."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config import plugins as registered
from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.config.keys.source import source_keys
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.connectors.java.keys import JavaConnectorKeys
from airflow_connect.control.migration.aiven_s3 import SAME_MEANING
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.java.properties_file import parse_properties
from airflow_connect.registry.converters.avro_converter import AvroConverter
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.transforms.shared.reference import predicates, transformations
from tests.docs.pages import PAGES, ROOT, Block, blocks, code_spans, name_of

WORKER = {"bootstrap.servers": "broker:9092", "key.converter": "StringConverter", "value.converter": "JsonConverter"}
KEY = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9_]*)+")
NOT_OURS = {
    # Aiven's S3 sink.
    *SAME_MEANING,
    "file.name.template",
    "format.output.envelope",
    "format.output.fields",
    "format.output.type",
    # Brokers and topics.
    "offsets.retention.minutes",
    "retention.ms",
    "delete.retention.ms",
    "cleanup.policy",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "auto.create.topics.enable",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "segment.bytes",
    "min.insync.replicas",
    "retention.bytes",
    "segment.ms",
    "runs.storage.min.insync.replicas",
    # Kafka Connect's clients and sources, Spark, error reports, namespaces of Python.
    "consumer.override.auto.offset.reset",
    "auto.offset.reset",
    "enable.auto.commit",
    "isolation.level",
    "max.request.size",
    "exception.class.name",
    "exception.message",
    "error.code",
    # Java plugins of others.
    "database.server.id",
    "heartbeat.interval.ms",
    "schema.history.internal.kafka.bootstrap.servers",
    "delete.on.null.values",
    "primary.key.mode",
    "mongo.errors.tolerance",
    # Hadoop.
    "dfs.namenode.kerberos.principal",
    "connect.decimal.precision",
    "connect.name",
    "connect.doc",
    "connect.index",
    "connect.version",
    "connect.parameters",
    "connect.default",
    "connect.type",
    "tool.importlinter",
    "org.apache.kafka.connect.runtime",
    # Settings of config providers, of a converter.
    "allowed.paths",
    "allowlist.pattern",
    "converter.encoding",
    # Hive: a table property, a name of a table, a topic with a dot.
    "avro.schema.literal",
    "a.b",
    "shop.orders",
    "raw.kafka_shop_orders",
    # Tables of a database, with schema and catalog.
    "public.orders",
    "shop.public.orders",
    # A setting of a search server's index, and a value.
    "index.append_only.enabled",
    "index.gc_deletes",
    "index.translog.durability",
    "topic.partition.offset",
    # Keys of a cluster in a file of MirrorMaker 2.
    "west.bootstrap.servers",
    "west.security.protocol",
    # Java plugins of others: Debezium's, MongoDB's, and what a task asks of its context.
    "heartbeat.action.query",
    "schemas.enable",
    "context.offset",
    # Wrong on purpose.
    "run.max.record",
}
FILES = re.compile(r".+\.(md|py|json|toml|lock|yaml|svg|properties|avro|parquet|gz|bin|env|example|keys|headers|conf)")


def shown(block: Block) -> str:
    return f"{block.page}: {' '.join(block.text.split())[:50]}"


CONNECTORS = [block for block in blocks("json") if '"connector.class"' in block.text]
FRAGMENTS = blocks("json fragment")
JSON = blocks("json", "json fragment")


@pytest.mark.parametrize("block", JSON, ids=shown)
def test_json_example_is_json(block: Block) -> None:
    assert isinstance(json.loads(block.text), dict)


@pytest.mark.parametrize("block", CONNECTORS, ids=shown)
def test_connector_example_has_no_findings(block: Block) -> None:
    assert validate_connector(RunSpec(json.loads(block.text), WORKER)) == []


@pytest.mark.parametrize("block", blocks("json db_conn_id"), ids=shown)
def test_connector_example_has_no_findings_with_the_address_of_a_connection(block: Block) -> None:
    address = {"connection.url": "jdbc:postgresql://db/shop"}
    assert validate_connector(RunSpec({**json.loads(block.text), **address}, WORKER)) == []


@pytest.mark.parametrize("block", FRAGMENTS, ids=shown)
def test_fragment_of_a_configuration_has_no_findings_in_the_smallest_one(block: Block) -> None:
    smallest = next(json.loads(b.text) for b in CONNECTORS if b.page == block.page)
    fragment = json.loads(block.text)
    # Keys of a converter go with it; a backup uses none.
    unused = ("value.converter.",) if "value.converter" in fragment else ()
    unused = ("key.converter", "value.converter") if "store.kafka.records" in fragment else unused
    kept = {k: v for k, v in smallest.items() if not k.startswith(unused)}
    assert validate_connector(RunSpec({**kept, **fragment}, WORKER)) == []


@pytest.mark.parametrize("block", blocks("properties"), ids=shown)
def test_worker_example_is_valid(block: Block) -> None:
    config = WorkerConfig.from_properties(parse_properties(block.text))
    assert (config.unknown, config.ignored) == ((), ())


@pytest.mark.parametrize("block", blocks("python"), ids=shown)
def test_python_example_compiles(block: Block) -> None:
    assert compile(block.text, block.page, "exec") is not None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_configuration_keys_that_a_page_names_exist(page: Path) -> None:
    unknown = sorted({key for span in code_spans(page) for key in keys_in(span) if not is_known(key)})
    assert unknown == []


def test_documents_of_the_architecture_page_load() -> None:
    documents = [json.loads(b.text) for b in blocks("json") if b.page == "docs/architecture.md"]
    manifest, state, run = documents
    assert Manifest.from_json(manifest).to_json() == manifest
    assert ConnectorState.from_json(state).to_json() == state
    assert {"v": 1, **RunReport.from_json({k: v for k, v in run.items() if k != "v"}).to_json()} == run


def test_envelope_of_the_command_line_page_has_its_members() -> None:
    from airflow_connect.cli.outcome import CommandOutcome

    (envelope,) = [json.loads(b.text) for b in blocks("json") if b.page == "docs/cli.md"]
    assert list(envelope) == list(CommandOutcome("").envelope("validate"))
    error: dict[str, Any] = ConnectError("It failed.").to_json()
    assert set(error) == {"code", "type", "message", "suggestion", "configPath", "retriable"}


def keys_in(span: str) -> list[str]:
    """Configuration keys in a code span: a key alone, or `key=value`."""
    name = span.partition("=")[0].strip()
    return [name] if KEY.fullmatch(name) and not FILES.fullmatch(name) else []


@cache
def error_codes() -> frozenset[str]:
    """Every code of an error, as the page says; `test_error_code_page_equals_the_code` compares that with the code."""
    rows = re.findall(r"^\| `([a-z0-9_.]+)` \|", (ROOT / "docs/error-codes.md").read_text("utf-8"), re.MULTILINE)
    return frozenset(rows)


@cache
def is_known(name: str) -> bool:
    plugins = [definition for _, definition in (*transformations().values(), *predicates().values())]
    plugins += [converter.config_def for converter in (AvroConverter, JsonSchemaConverter, ProtobufConverter)]
    connectors = [registered.load(resolve(PluginKind.CONNECTOR, n)) for n in registered.built_in(PluginKind.CONNECTOR)]
    plugins.append(JavaConnectorKeys.config_def())
    definitions = (WorkerConfig.config_def(), source_keys(), *(c.config_def for c in connectors), *plugins)
    if (
        name in NOT_OURS
        or name in error_codes()
        or name.startswith(("spark.", "airflow_connect.", "tests.", "connect.", "converters.", "runtime.", "python."))
    ):
        return True
    return any(name in d.keys or any(name.startswith(f.prefix) for f in d.families) for d in definitions)
