"""The connector classes that a new connector may have: what each copies, and what it guarantees.

Only classes of this package and of entry points are imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from markupsafe import Markup, escape

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.api.source import SourceConnector
from airflow_connect.errors import ConnectError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin, all_registered

DOCS = "https://airflow-connect.readthedocs.io/en/stable/connectors/"
_ONCE, _EFFECT, _LEAST = "Exactly once", "Exactly once, by idempotent writes", "At least once"
_PLUGINS_OWN = "As its own page says"
_GUARANTEES = {
    Delivery.STAGED: _ONCE,
    Delivery.TRANSACTIONAL: _ONCE,
    Delivery.IDEMPOTENT: _EFFECT,
    Delivery.AT_LEAST_ONCE: _LEAST,
}


@dataclass(frozen=True, slots=True)
class Card:
    """A connector class.

    Attributes:
        connector_class: as configurations name it.
        copies: what it copies, a sentence.
        start, end: the two ends of its way.
        page: of the documentation, or "".
        problem: why it cannot be used, or "".
    """

    connector_class: str
    title: str
    kind: str
    start: str
    end: str
    copies: str
    guarantee: str
    page: str = ""
    problem: str = ""

    @property
    def words(self) -> str:
        """What the search looks at."""
        texts = (self.connector_class, self.title, self.kind, self.start, self.end, self.copies, self.guarantee)
        return " ".join(texts).lower()

    @property
    def picture(self) -> Markup:
        """The way of the records."""
        return way(self.start, self.end)


_CARDS = (
    Card("io.confluent.connect.s3.S3SinkConnector", "S3 sink", "sink", "Kafka topics", "S3 bucket",
         "Records become objects of JSON, Avro, Parquet, ORC or raw bytes in S3 or a compatible store.",
         _ONCE, "s3-sink.html"),
    Card("io.confluent.connect.hdfs.HdfsSinkConnector", "HDFS sink", "sink", "Kafka topics", "HDFS directory",
         "Records become files in HDFS, with tables of Hive if wanted.", _ONCE, "hdfs-sink.html"),
    Card("airflow_connect.connectors.local.LocalSinkConnector", "Local files sink", "sink", "Kafka topics", "Directory",
         "Records become files in a directory that all tasks reach.", _ONCE, "local-sink.html"),
    Card("org.apache.kafka.connect.file.FileStreamSinkConnector", "File stream sink", "sink", "Kafka topics",
         "One text file", "Each record becomes a line of one file, or of standard output.",
         f"{_ONCE}; {_LEAST.lower()} on standard output", "file-stream-sink.html"),
    Card("io.confluent.connect.jdbc.JdbcSinkConnector", "Database sink (JDBC)", "sink", "Kafka topics",
         "Database tables", "Records become rows of tables, inserted, upserted or updated.", _ONCE, "jdbc-sink.html"),
    Card("org.apache.iceberg.connect.IcebergSinkConnector", "Iceberg sink", "sink",
         "Kafka topics", "Iceberg tables", "Records become rows of lake tables, one snapshot for each run.",
         _ONCE, "iceberg-sink.html"),
    Card("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", "Elasticsearch and OpenSearch sink", "sink",
         "Kafka topics", "Search index", "Records become documents of an index or a data stream.",
         _EFFECT, "search-sink.html"),
    Card("io.confluent.connect.jdbc.JdbcSourceConnector", "Database source (JDBC)", "source", "Database tables",
         "Kafka topics", "New and changed rows of tables, or of a query, become records.",
         f"{_ONCE}; {_LEAST.lower()} in mode bulk", "jdbc-source.html"),
    Card("org.apache.kafka.connect.file.FileStreamSourceConnector", "File source", "source", "Text files",
         "Kafka topic", "Each new line of files, such as logs, becomes a record.",
         f"{_ONCE}; {_LEAST.lower()} from standard input", "file-source.html"),
    Card("org.apache.kafka.connect.mirror.MirrorSourceConnector", "Mirror source", "source", "Another cluster",
         "Kafka topics", "Topics of another Kafka cluster, with their settings.", _ONCE, "mirror-source.html"),
    Card("org.apache.kafka.connect.mirror.MirrorCheckpointConnector", "Mirror checkpoints", "source",
         "Another cluster", "Consumer offsets", "Offsets of consumer groups of a mirrored cluster, translated.",
         _ONCE, "mirror-checkpoint.html"),
    Card("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", "Mirror heartbeats", "source",
         "This run", "Kafka topic", "A record of each run, which shows that mirroring works.",
         _ONCE, "mirror-heartbeat.html"),
    Card("io.confluent.connect.s3.source.S3SourceConnector", "Restore from S3", "source", "S3 bucket", "Kafka topics",
         "Backups of whole records become topics again, byte for byte.", _ONCE, "restore-source.html"),
    Card("airflow_connect.connectors.hdfs.HdfsSourceConnector", "Restore from HDFS", "source", "HDFS directory",
         "Kafka topics", "Backups of whole records become topics again, byte for byte.", _ONCE, "restore-source.html"),
    Card("airflow_connect.connectors.local.LocalSourceConnector", "Restore from local files", "source", "Directory",
         "Kafka topics", "Backups of whole records become topics again, byte for byte.", _ONCE, "restore-source.html"),
    Card("airflow_connect.connectors.metrics.MetricsSourceConnector", "Metrics source", "source", "Host metrics",
         "Kafka topic", "Samples of CPU, memory, disks and network of the machine.", _ONCE, "metrics-source.html"),
)  # fmt: skip


def cards() -> tuple[Card, ...]:
    """Of all connector classes: those of this package, entry points, then Java classes of `plugin.path`."""
    own = plugins.built_in(PluginKind.CONNECTOR)
    java = (plugin for plugin in all_registered() if plugin.kind is PluginKind.CONNECTOR)
    return (*_python_cards(), *(_java(plugin) for plugin in java if plugin.class_name not in own))


@cache
def _python_cards() -> tuple[Card, ...]:
    return (*_CARDS, *(_third_party(name) for name in plugins.entry_point_names(PluginKind.CONNECTOR)))


def found(words: str) -> tuple[Card, ...]:
    """The cards that have all of these words."""
    wanted = words.lower().split()
    return tuple(card for card in cards() if all(word in card.words for word in wanted))


def way(start: str, end: str) -> Markup:
    """Two boxes with an arrow between them."""
    texts = [
        f'<text x="{x}" y="26" text-anchor="middle">{escape(text)}</text>' for x, text in ((65, start), (235, end))
    ]
    return Markup(
        f'<svg class="way" viewBox="0 0 300 44" role="img" aria-label="From {escape(start)} to {escape(end)}">'
        '<rect x="1" y="4" width="128" height="36" rx="6"/><rect x="171" y="4" width="128" height="36" rx="6"/>'
        f'<path d="M133 22h30m-7-6 7 6-7 6"/>{"".join(texts)}</svg>'
    )


def _java(plugin: JavaPlugin) -> Card:
    """The card of a Java class. Java is not asked about it."""
    title = plugin.class_name.rpartition(".")[2]
    copies = f"A Java plugin in {plugin.location}."
    if plugin.is_sink:
        return Card(plugin.class_name, title, "sink", "Kafka topics", title, copies, _PLUGINS_OWN)
    return Card(plugin.class_name, title, "source", title, "Kafka topics", copies, _PLUGINS_OWN)


def _third_party(name: str) -> Card:
    """The card of an entry point, from its class; or with the reason why that cannot be loaded."""
    try:
        plugin = plugins.load_class(PluginKind.CONNECTOR, name)
    except ConnectError as error:
        return Card(name, name, "", "?", "?", "A plugin of another package.", "", problem=str(error))
    copies = (plugin.__doc__ or "A plugin of another package.").strip().splitlines()[0]
    if isinstance(plugin, type) and issubclass(plugin, SinkConnector):
        return Card(name, name, "sink", "Kafka topics", plugin.__name__, copies, _GUARANTEES[plugin.delivery])
    if isinstance(plugin, type) and issubclass(plugin, SourceConnector):
        return Card(name, name, "source", plugin.__name__, "Kafka topics", copies, _PLUGINS_OWN)
    return Card(name, name, "", "?", "?", copies, "", problem=f"{name} is neither a sink nor a source connector.")
