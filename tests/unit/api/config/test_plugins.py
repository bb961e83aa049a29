from __future__ import annotations

import sys
import uuid
from importlib.metadata import EntryPoint

import pytest

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind, PluginRef, load, load_class, resolve
from airflow_connect.errors import ConfigError

EXTRACTOR = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordTimestampExtractor"
KAFKA, HDFS = "org.apache.kafka.connect", "io.confluent.connect.hdfs.partitioner"
SIMPLE_HEADERS = "converters.simple_header_converter:SimpleHeaderConverter"


S3_SINK = "connectors.files.s3.connector:S3SinkConnector"


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        (PluginKind.CONNECTOR, "io.confluent.connect.s3.S3SinkConnector", S3_SINK),
        (PluginKind.CONNECTOR, "S3SinkConnector", S3_SINK),
        (PluginKind.CONNECTOR, "S3Sink", S3_SINK),
        (PluginKind.CONVERTER, f"{KAFKA}.json.JsonConverter", "converters.json.converter:JsonConverter"),
        (PluginKind.CONVERTER, "Json", "converters.json.converter:JsonConverter"),
        (PluginKind.HEADER_CONVERTER, "SimpleHeaderConverter", SIMPLE_HEADERS),
        (PluginKind.HEADER_CONVERTER, "Simple", SIMPLE_HEADERS),
        (PluginKind.HEADER_CONVERTER, "StringConverter", "converters.string_converter:StringConverter"),
        (PluginKind.FORMAT, "io.confluent.connect.s3.format.json.JsonFormat", "formats.json_lines:JsonFormat"),
        (PluginKind.FORMAT, "ByteArray", "formats.raw_bytes:ByteArrayFormat"),
        (PluginKind.PARTITIONER, f"{HDFS}.DailyPartitioner", "layout.partitioners:DailyPartitioner"),
        (PluginKind.PARTITIONER, "TimeBased", "layout.partitioners:TimeBasedPartitioner"),
        (PluginKind.TIMESTAMP_EXTRACTOR, EXTRACTOR, "layout.timestamp_extractors:RecordTimestampExtractor"),
        (PluginKind.TIMESTAMP_EXTRACTOR, "RecordField", "layout.timestamp_extractors:RecordFieldTimestampExtractor"),
        (PluginKind.TIMESTAMP_EXTRACTOR, "Record", "layout.timestamp_extractors:RecordTimestampExtractor"),
    ],
)  # fmt: skip
def test_resolve_built_in_name_or_alias_gives_our_path(kind: PluginKind, name: str, path: str) -> None:
    assert resolve(kind, name).path == f"airflow_connect.{path}"


def test_resolve_alias_gives_confluents_storage_name() -> None:
    assert resolve(PluginKind.PARTITIONER, "Daily").name == "io.confluent.connect.storage.partitioner.DailyPartitioner"


@pytest.mark.parametrize("name", ["airflow_connect.errors:DataError", "airflow_connect.errors.DataError"])
def test_resolve_dotted_path_of_existing_module_is_taken(name: str) -> None:
    ref = resolve(PluginKind.FORMAT, name)
    assert ref.path == "airflow_connect.errors:DataError"
    assert load(ref).__name__ == "DataError"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("io.confluent.connect.s3.format.json.JSONFormat", "io.confluent.connect.s3.format.json.JsonFormat"),
        ("AvroFromat", "AvroFormat"),
        ("Parkuet", "Parquet"),
        ("com.example.formats.ParquetFormt", "ParquetFormat"),
    ],
)
def test_resolve_misspelt_name_suggests_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(PluginKind.FORMAT, name)
    assert caught.value.code == "plugin.not_found"
    assert nearest in caught.value.suggestion


@pytest.mark.parametrize(
    "name", ["", " JsonFormat", "zzz", "no.such.module.Class", "no.such.module:Class", ".Format", "a..b"]
)
def test_resolve_unknown_name_lists_what_is_known(name: str) -> None:
    with pytest.raises(ConfigError, match="There is no format called"):
        resolve(PluginKind.FORMAT, name)


def test_resolve_entry_point_of_third_party_by_name_and_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*, group: str) -> list[EntryPoint]:
        assert group == "airflow_connect.partitioners"
        return [EntryPoint("ByCountry", "airflow_connect.errors:DataError", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    plugins._registered.cache_clear()
    try:
        assert resolve(PluginKind.PARTITIONER, "ByCountry").path == "airflow_connect.errors:DataError"
    finally:
        plugins._registered.cache_clear()


def test_resolve_alias_of_two_classes_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_built_in", lambda _kind: {"a.XFormat": "m:A", "b.XFormat": "m:B"})
    plugins._by_alias.cache_clear()
    try:
        with pytest.raises(ConfigError, match="There is no format called 'XFormat'"):
            resolve(PluginKind.FORMAT, "XFormat")
        assert resolve(PluginKind.FORMAT, "b.XFormat").path == "m:B"
    finally:
        plugins._by_alias.cache_clear()


def test_load_missing_module_or_class_says_which() -> None:
    for path in ("airflow_connect.nowhere:X", "airflow_connect.errors:Nothing"):
        with pytest.raises(ConfigError, match="cannot be loaded from") as caught:
            load(PluginRef(PluginKind.FORMAT, "X", path))
        assert caught.value.code == "plugin.not_loadable"


def test_load_class_imports_only_now() -> None:
    sys.modules.pop("airflow_connect.config.keys.points_in_time", None)
    name = "airflow_connect.config.keys.points_in_time:parse_timestamp_ms"
    resolve(PluginKind.FORMAT, name)
    assert "airflow_connect.config.keys.points_in_time" not in sys.modules
    assert load_class(PluginKind.FORMAT, name)("5") == 5


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise SystemExit(3)", "the import ended with SystemExit: 3"),
        ("1/0", "the import ended with ZeroDivisionError: division by zero"),
        ("def broken(:", "the import ended with SyntaxError"),
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
    ],
)
@pytest.mark.parametrize("place", ["module", "parent"])
def test_load_plugin_whose_import_fails_in_any_way_is_a_config_error(tmp_path, monkeypatch, body, why, place) -> None:
    package = tmp_path / f"broken_{uuid.uuid4().hex}"
    package.mkdir()
    (package / "__init__.py").write_text(body if place == "parent" else "")
    (package / "inner.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in (f"{package.name}.inner:Sink", f"{package.name}.inner.Sink"):
        with pytest.raises(ConfigError) as caught:
            load_class(PluginKind.CONNECTOR, name)
        is_missing = caught.value.code == "plugin.not_found" and place == "parent" and "no_such_module" in body
        assert why in caught.value.message or is_missing
        assert f"{package.name}.inner" in caught.value.message


def test_installed_looks_at_no_module_that_is_not_a_plugin() -> None:
    assert plugins.installed(PluginKind.CONNECTOR, "S3Sink") == resolve(PluginKind.CONNECTOR, "S3Sink")
    assert plugins.installed(PluginKind.CONNECTOR, "os:path") is None
    assert plugins.installed(PluginKind.CONNECTOR, "os.path") is None
