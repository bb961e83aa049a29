"""Reference pages from the definitions of keys: `python -m tests.docs.reference_pages`.

Every fact of a page comes from the ConfigDef that also validates, so the two always agree; a test compares the files
in docs/ with the generator.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from airflow_connect.api.config import values as config_values
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, KeyFamily
from airflow_connect.api.config.values import Type

PYTHON_MODULE = "tests.docs.reference_pages"


class Page(NamedTuple):
    """One page: its file, title, introduction, and the dotted paths of the definitions of its keys.

    `definition` is a function that returns a ConfigDef, or for plugins a dict from name to (what it does, ConfigDef);
    in the second case there may be several, separated by blanks. The paths are text, so that a page imports only what
    it shows.
    """

    file: str
    title: str
    introduction: str
    definition: str


PAGES = (
    Page(
        "docs/connectors/s3-sink.reference.md",
        "S3 sink: every configuration key",
        "Keys of Kafka Connect and of Confluent's S3 sink keep their names, defaults and checks. The groups"
        " Run and, in the worker, Runs are additions.",
        "airflow_connect.connectors.files.s3.config:S3SinkConfig.config_def",
    ),
    Page(
        "docs/connectors/local-sink.reference.md",
        "Local sink: every configuration key",
        "Keys of Kafka Connect, of Confluent's storage sinks, and a directory. The group Run is an addition.",
        "airflow_connect.connectors.files.local.config:LocalSinkConfig.config_def",
    ),
    Page(
        "docs/connectors/file-stream-sink.reference.md",
        "FileStreamSink: every configuration key",
        "`file` is Kafka Connect's. The group Run is an addition.",
        "airflow_connect.connectors.file_stream.sink.config:FileSinkKeys.config_def",
    ),
    Page(
        "docs/connectors/file-source.reference.md",
        "File source: every configuration key",
        "`file`, `topic` and `batch.size` are Kafka Connect's; all others are additions, and all of them are optional."
        " Keys"
        " that every source has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.file_stream.source.config:FileSourceConfig.config_def",
    ),
    Page(
        "docs/connectors/metrics-source.reference.md",
        "Metrics source: every configuration key",
        "Its own keys; those that every source has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.metrics.config:MetricsConfig.config_def",
    ),
    Page(
        "docs/connectors/mirror-source.reference.md",
        "Mirror source: every configuration key",
        "Keys of MirrorMaker 2's MirrorSourceConnector keep their names, defaults and checks; `offsets.out.of.range` is"
        " an addition. Keys that every source has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.mirror.keys:MirrorKeys.config_def",
    ),
    Page(
        "docs/connectors/mirror-checkpoint.reference.md",
        "Mirror checkpoints: every configuration key",
        "Keys of MirrorMaker 2's MirrorCheckpointConnector keep their names, defaults and checks. Keys that every"
        " source has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.mirror.checkpoint.keys:CheckpointKeys.config_def",
    ),
    Page(
        "docs/connectors/mirror-heartbeat.reference.md",
        "Mirror heartbeats: every configuration key",
        "Keys of MirrorMaker 2's MirrorHeartbeatConnector keep their names, defaults and checks. Keys that every source"
        " has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.mirror.heartbeat.keys:HeartbeatConfig.config_def",
    ),
    Page(
        "docs/connectors/s3-source.reference.md",
        "S3 source: every configuration key",
        "Keys of Confluent's S3 source keep their names and defaults; `topics`, `topics.regex`, `file.delim`,"
        " `topic.rename`, `target.*` and `accept.loss` are additions. Keys that every source has are on"
        " [another page](../concepts/sources.md).",
        "airflow_connect.connectors.restore.config:S3RestoreConfig.config_def",
    ),
    Page(
        "docs/connectors/hdfs-source.reference.md",
        "HDFS source: every configuration key",
        "Restores backups in HDFS. Keys that every source has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.restore.config:HdfsRestoreConfig.config_def",
    ),
    Page(
        "docs/connectors/local-source.reference.md",
        "Local source: every configuration key",
        "Restores backups in directories. Keys that every source has are on [another page](../concepts/sources.md).",
        "airflow_connect.connectors.restore.config:LocalRestoreConfig.config_def",
    ),
    Page(
        "docs/java-plugins.reference.md",
        "Java connectors: every key of this package",
        "Keys that each Java connector has besides its own, and those of every source or sink.",
        "airflow_connect.connectors.java.keys:JavaConnectorKeys.config_def",
    ),
    Page(
        "docs/connectors/jdbc-source.reference.md",
        "JDBC source: every configuration key",
        "Keys of Confluent's JDBC source keep their names, defaults and checks; `timestamp.lookback.*` and"
        " `quote.identifiers` are additions. Keys that every source has are on"
        " [another page](../concepts/sources.md).",
        "airflow_connect.connectors.jdbc.source.settings.config:JdbcSourceConfig.config_def",
    ),
    Page(
        "docs/connectors/hdfs-sink.reference.md",
        "HDFS sink: every configuration key",
        "Keys of Kafka Connect and of Confluent's HDFS sink keep their names, defaults and checks. The group Run,"
        " `behavior.on.null.values` and `report.null.values.to.dlq` are additions.",
        "airflow_connect.connectors.files.hdfs.config:HdfsSinkConfig.config_def",
    ),
    Page(
        "docs/connectors/iceberg-sink.reference.md",
        "Iceberg sink: every configuration key",
        "Keys of Kafka Connect and of Apache's Iceberg sink keep their names and defaults."
        " `iceberg.tables.dynamic-pattern` and the group Run are additions.",
        "airflow_connect.connectors.iceberg.tables:IcebergConfig.config_def",
    ),
    Page(
        "docs/connectors/search-sink.reference.md",
        "Search sink: every configuration key",
        "Keys of Kafka Connect and of Confluent's Elasticsearch sink keep their names, defaults and checks."
        " `key.ignore.id.strategy` is a key of Aiven's OpenSearch sink. `connection.api.key` and the group Run are"
        " additions.",
        "airflow_connect.connectors.search.config:SearchSinkConfig.config_def",
    ),
    Page(
        "docs/connectors/jdbc-sink.reference.md",
        "JDBC sink: every configuration key",
        "Keys of Kafka Connect and of Confluent's JDBC sink keep their names, defaults and checks. The groups Run and"
        " Exactly once, and `behavior.on.null.values`, are additions.",
        "airflow_connect.connectors.jdbc.sink.config:JdbcSinkConfig.config_def",
    ),
    Page(
        "docs/worker.reference.md",
        "Worker: every configuration key",
        "The settings that connectors share. Any other key counts as a setting of Kafka's clients.",
        "airflow_connect.config.resolved.worker:WorkerConfig.config_def",
    ),
    Page(
        "docs/transformations.reference.md",
        "Transformations and predicates: every configuration key",
        "Keys of the class have the prefix `transforms.<alias>.` or `predicates.<alias>.`. How they work together:"
        " [transformations.md](transformations.md).",
        "airflow_connect.transforms.shared.reference:transformations"
        " airflow_connect.transforms.shared.reference:predicates",
    ),
)


def render(page: Page) -> str:
    """The page as Markdown."""
    lines = [
        f"# {page.title}",
        "",
        f"<!-- Generated by `python -m {PYTHON_MODULE}`. Change the definition, not this file. -->",
        "",
        page.introduction,
        "",
    ]
    for path in page.definition.split():
        module, _, name = path.partition(":")
        found = attrgetter(name)(import_module(module))()
        lines += _definition(found) if isinstance(found, ConfigDef) else _plugins(found)
    return "\n".join(lines).rstrip("\n") + "\n"


def _plugins(sections: Mapping[str, tuple[str, ConfigDef]]) -> list[str]:
    """One heading for each plugin."""
    lines = []
    for name, (what, definition) in sections.items():
        keys = list(definition.keys.values())
        table = _key_table(keys) if keys else ["It has no keys of its own."]
        lines += [f"## {name}", "", what, "", *table, ""]
    return lines


def _definition(definition: ConfigDef) -> list[str]:
    """One heading for each group of keys."""
    lines: list[str] = []
    meaningful = [key for key in definition.keys.values() if not key.ignored]
    for group in dict.fromkeys(key.group or "Other" for key in meaningful):
        lines += [f"## {group}", "", *_key_table(k for k in meaningful if (k.group or "Other") == group), ""]
    families = [family for family in definition.families if not family.ignored]
    if families:
        lines += ["## Keys that begin with", "", *_family_table(families), ""]
    return lines + _ignored(definition)


def _ignored(definition: ConfigDef) -> list[str]:
    rows = [(key.name, key.documentation, key.ignored) for key in definition.keys.values() if key.ignored]
    rows += [(f"{f.prefix}*", f.documentation, f.ignored) for f in definition.families if f.ignored]
    if not rows:
        return []
    text = "They are checked as usual, but have no effect. The report of a run lists those that are set."
    table = [f"| `{name}` | {_cell(meaning)} | {_cell(reason)} |" for name, meaning, reason in rows]
    return [
        "## Accepted without effect",
        "",
        text,
        "",
        "| key | meaning in Kafka Connect | why it has no effect here |",
        "|---|---|---|",
        *table,
        "",
    ]


def _key_table(keys: Iterable[ConfigKey]) -> list[str]:
    rows = ["| key | type | default | valid values | importance | meaning |", "|---|---|---|---|---|---|"]
    for key in keys:
        cells = (
            f"`{key.name}`",
            key.type.value.lower(),
            _default(key),
            _cell(key.valid_values),
            key.importance.value.lower(),
        )
        rows.append(f"| {' | '.join(cells)} | {_cell(key.documentation)} |")
    return rows


def _family_table(families: Sequence[KeyFamily]) -> list[str]:
    return [
        "| prefix | meaning |",
        "|---|---|",
        *(f"| `{f.prefix}` | {_cell(f.documentation)} |" for f in families),
    ]


def _default(key: ConfigKey) -> str:
    if key.is_required:
        return "**required**"
    text = config_values.convert_to_string(key.parsed_default, key.type)
    if text is None or key.type is Type.PASSWORD:
        return "not set"
    return f"`{text}`" if text else "blank"


def _cell(text: str) -> str:
    """Text of a table cell: Markdown's own characters are escaped, except inside `code`."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(p if n % 2 else p.replace("<", "&lt;").replace("*", "\\*") for n, p in enumerate(parts))


def main(arguments: Sequence[str]) -> int:
    """Write every page below the given folder, by default the current one."""
    parser = ArgumentParser(prog=f"python -m {PYTHON_MODULE}", description="Write the reference pages of all keys.")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="root of the source tree, by default the current folder"
    )
    root: Path = parser.parse_args(arguments).folder
    for page in PAGES:
        file = root / page.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(page), "utf-8")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
