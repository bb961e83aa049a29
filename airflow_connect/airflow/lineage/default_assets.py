"""Assets of a connector, as its configuration names them: topics, buckets, directories of HDFS, files.

They are determined when the DAG file is parsed, so no connection, broker or plugin is used. Values that are not
literally in the configuration (a template, a reference to a config provider, a pattern of topics) have no asset.
Topics: `kafka://<first broker>/<topic>`, as Airflow's Kafka provider writes them; directories:
`s3://<bucket>/<topics.dir>/<topic>`, `hdfs://<name node>/<topics.dir>/<topic>` and `file:///<path>/<topics.dir>/<topic>`.
Tables of a lake: `iceberg://<catalog>/<table>`.
Files that a source reads: the file itself, or for a pattern the directory up to its first wildcard. Tables: see
`database_assets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk import Asset

from airflow_connect.airflow.lineage.database_assets import read_tables, written_tables, written_topics

_UNKNOWN = re.compile(r"\$\{|\{\{|\{%")
_SINK = re.compile(r"Sink(?:Connector)?$")
_SOURCE = re.compile(r"Source(?:Connector)?$")
_WILDCARD = re.compile(r"[*?\[]")
_FILE_URL = re.compile(r"(?:file:///|s3://|hdfs://)[^/]")
_TOPICS_DIR, _DEFAULT_TOPICS_DIR = "topics.dir", "topics"
# Transformations of Kafka Connect and Confluent that leave the topic of a record as it is.
_KEEPS_TOPIC = re.compile(
    r"\b(?:Cast|DropHeaders|Drop|ExtractField|Filter|Flatten|GzipDecompress|HeaderFrom|HoistField|InsertField"
    r"|InsertHeader|MaskField|ReplaceField|SetSchemaMetadata|TimestampConverter|TombstoneHandler|ValueToKey)"
    r"(?:\$(?:Key|Value))?$"
)


def default_assets(connector: Mapping[str, Any], worker: Mapping[str, Any]) -> tuple[list[Asset], list[Asset]]:
    """Inlets and outlets of a connector with this configuration; either may be empty."""
    name = _class_name(connector)
    if _SOURCE.search(name):
        if name.startswith("Jdbc"):
            topics = [] if _may_rename(connector) else written_topics(connector)
            return read_tables(connector), topic_assets(topics, worker)
        return _read_files(connector), topic_assets([_known(connector, "topic")], worker)
    if not _SINK.search(name):
        return [], []
    topics = [topic.strip() for topic in _known(connector, "topics").split(",")]
    if name.startswith("Jdbc"):
        return topic_assets(topics, worker), written_tables(connector, topics, may_rename=_may_rename(connector))
    if is_lake_sink(connector):
        return topic_assets(topics, worker), _lake_tables(connector)
    return topic_assets(topics, worker), _directories(name, connector, topics)


def _class_name(connector: Mapping[str, Any]) -> str:
    return re.split("[.:$]", _known(connector, "connector.class"))[-1]


def is_lake_sink(connector: Mapping[str, Any]) -> bool:
    """Whether the connector writes tables of a lake."""
    name = _class_name(connector)
    return name.startswith("Iceberg") and _SINK.search(name) is not None


def without_known(assets: Iterable[Asset], given: Iterable[Any]) -> list[Asset]:
    """`assets` without those whose URI is in `given` under any name: a URI has one name in Airflow."""
    uris = {asset.uri for asset in given if isinstance(asset, Asset)}
    return [asset for asset in assets if asset.uri not in uris]


def _known(config: Mapping[str, Any], key: str) -> str:
    """A value as it is written; "" if it is missing, or known only when the task runs."""
    value = str(config.get(key) or "").strip()
    return "" if _UNKNOWN.search(value) else value


def topic_assets(topics: Iterable[str], worker: Mapping[str, Any]) -> list[Asset]:
    """Topics on the first broker that the worker names; [] if it names none."""
    first = _known(worker, "bootstrap.servers").partition(",")[0].strip().rpartition("://")[2]
    return [Asset(f"kafka://{first}/{topic}") for topic in topics if topic] if first else []


def _lake_tables(connector: Mapping[str, Any]) -> list[Asset]:
    """`iceberg://<catalog>/<namespace>.<table>` of each table that the configuration lists."""
    catalog = _known(connector, "iceberg.catalog") or ("" if "iceberg.catalog" in connector else "iceberg")
    tables = [table.strip() for table in _known(connector, "iceberg.tables").split(",")]
    return [Asset(f"iceberg://{catalog}/{table}") for table in tables if table] if catalog else []


def _directories(name: str, connector: Mapping[str, Any], topics: Sequence[str]) -> list[Asset]:
    root = _root(name, connector)
    folder = str(connector.get(_TOPICS_DIR, _DEFAULT_TOPICS_DIR)).strip("/ ")
    if name.startswith("FileStream"):
        return _files([_known(connector, "file")])
    if not root or _UNKNOWN.search(folder):
        return []
    root = f"{root}/{folder}" if folder else root
    if not any(topics) or _may_rename(connector):
        return [Asset(root)]
    return [Asset(f"{root}/{topic}") for topic in topics if topic]


def _root(name: str, connector: Mapping[str, Any]) -> str:
    """`s3://bucket` or `hdfs://host:port/path`; "" for other sinks, and if it is not known."""
    if name.startswith("S3"):
        bucket = _known(connector, "s3.bucket.name")
        return f"s3://{bucket}" if bucket else ""
    if name.startswith("Hdfs"):
        found = urlsplit(_known(connector, "store.url") or _known(connector, "hdfs.url"))
        return f"hdfs://{found.netloc}{found.path.rstrip('/')}" if found.scheme == "hdfs" and found.netloc else ""
    if name.startswith("LocalSink"):
        found = urlsplit(_known(connector, "store.url"))
        return f"file://{found.path.rstrip('/')}" if found.scheme in ("file", "") and found.path.startswith("/") else ""
    return ""


def _read_files(connector: Mapping[str, Any]) -> list[Asset]:
    written = [_known(connector, "file"), *_known(connector, "files").split(",")]
    return _files(_up_to_wildcard(path.strip()) for path in written)


def _up_to_wildcard(path: str) -> str:
    """The path itself, or the directory that certainly holds all files of a pattern."""
    wildcard = _WILDCARD.search(path)
    return path if wildcard is None else path[: wildcard.start()].rpartition("/")[0]


def _files(paths: Iterable[str]) -> list[Asset]:
    """Absolute paths and URLs; where a relative path begins is known where the driver runs only."""
    uris = dict.fromkeys(f"file://{path}" if path.startswith("/") else path for path in paths if path)
    trimmed = (uri.rstrip("/") for uri in uris if _FILE_URL.match(uri))
    return [Asset(uri) for uri in trimmed if urlsplit(uri).path or uri.startswith("s3://")]


def _may_rename(connector: Mapping[str, Any]) -> bool:
    """Whether a transformation may change the topic of records, and with it their directory."""
    aliases = filter(None, (alias.strip() for alias in str(connector.get("transforms") or "").split(",")))
    return not all(_KEEPS_TOPIC.search(str(connector.get(f"transforms.{alias}.type", ""))) for alias in aliases)
