"""The rows of the table: which load, and which connector copies it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.bench import (
    database_sinks,
    database_sources,
    file_sinks,
    java_plugins,
    lakes,
    mirrors,
    restores,
    search,
    sources,
)
from tests.bench.database_sources import TableRows
from tests.bench.sources import LogLines
from tests.bench.topics import SCHEMA, Load

_CONFLUENT = "io.confluent.connect"
_JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_BY_HOUR = {
    "partitioner.class": f"{_CONFLUENT}.storage.partitioner.TimeBasedPartitioner",
    "timestamp.extractor": "Record",
    "partition.duration.ms": "3600000",
    "path.format": "'day'=YYYY-MM-dd/'hour'=HH",
    "locale": "en-US",
    "timezone": "UTC",
}
RAW = {
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "format.class": f"{_CONFLUENT}.s3.format.bytearray.ByteArrayFormat",
    "format.bytearray.extension": ".json",
}
JSON = {
    "value.converter": _JSON_CONVERTER,
    "value.converter.schemas.enable": "false",
    "format.class": f"{_CONFLUENT}.s3.format.json.JsonFormat",
    **_BY_HOUR,
}
PARQUET = {
    "value.converter": _JSON_CONVERTER,
    "value.converter.schemas.enable": "true",
    "value.converter.schema.content": SCHEMA,
    "format.class": f"{_CONFLUENT}.s3.format.parquet.ParquetFormat",
    "parquet.codec": "zstd",
    "s3.compression.type": "none",
}
ENVELOPE = {key: value for key, value in PARQUET.items() if key != "value.converter.schema.content"}
AVRO_VALUES = {"value.converter": f"{_CONFLUENT}.avro.AvroConverter"}
AVRO = {
    **AVRO_VALUES,
    "format.class": f"{_CONFLUENT}.s3.format.parquet.ParquetFormat",
    "parquet.codec": "zstd",
    "s3.compression.type": "none",
}
_PROTOBUF_VALUES = {"value.converter": f"{_CONFLUENT}.protobuf.ProtobufConverter"}
_JSON_SCHEMA_VALUES = {"value.converter": f"{_CONFLUENT}.json.JsonSchemaConverter"}
PROTOBUF = {**AVRO, **_PROTOBUF_VALUES}
JSON_SCHEMA = {**AVRO, **_JSON_SCHEMA_VALUES}
_AVRO = f"{_CONFLUENT}.s3.format.avro.AvroFormat"
RECORDS = {"format.class": f"{_CONFLUENT}.s3.format.parquet.ParquetFormat", "store.kafka.records": "true"}
"""Whole records: a backup."""
# The HDFS sink has no compression around JSON.
HDFS_JSON = {**JSON, "format.class": f"{_CONFLUENT}.hdfs.json.JsonFormat"}
HDFS_PARQUET = {
    **{key: value for key, value in PARQUET.items() if not key.startswith("s3.")},
    "format.class": f"{_CONFLUENT}.hdfs.parquet.ParquetFormat",
    "parquet.codec": "snappy",
}
_TRANSFORMS = "org.apache.kafka.connect.transforms"
THREE_STEPS = {
    "transforms": "offset,rename,mask",
    "transforms.offset.type": f"{_TRANSFORMS}.InsertField$Value",
    "transforms.offset.offset.field": "kafka_offset",
    "transforms.rename.type": f"{_TRANSFORMS}.ReplaceField$Value",
    "transforms.rename.renames": "at:created_at,amount:price",
    "transforms.mask.type": f"{_TRANSFORMS}.MaskField$Value",
    "transforms.mask.fields": "user",
}
"""Kafka's offset as a field, two fields renamed, one masked."""
READS_HEADERS = {
    "transforms": "none",
    "transforms.none.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.none.predicate": "marked",
    "predicates": "marked",
    "predicates.marked.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.marked.name": "absent",
}
"""A predicate that looks at headers has no columnar form: all records go one by one. None has the header."""
_GZIP, _GZIP_6 = {"s3.compression.type": "gzip"}, {"s3.compression.type": "gzip", "s3.compression.level": "6"}
_COMPACT, _INTERVAL = {"files.per.partition": "compact"}, {"rotate.interval.ms": "3600000"}
_IGNORED = {"behavior.on.null.values": "ignore"}
_KEYS = {
    "store.kafka.keys": "true",
    "keys.format.class": f"{_CONFLUENT}.s3.format.json.JsonFormat",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
}
_HEADERS = {"store.kafka.headers": "true", "headers.format.class": f"{_CONFLUENT}.s3.format.json.JsonFormat"}
_AGAINST_RECORDS = (
    "json-hourly", "parquet", "envelope-parquet", "json-schema", "json-nulls", "json-keys", "json-headers",
    "avro-arrays", "avro-maps", "protobuf",
)  # fmt: skip
_ONE_FILE = {"flush.size": "10000000"}  # per partition and directory


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        name: for `--rows`.
        about: what is copied, for people.
        load: the topic, or for a source the file or the table.
        config: connector keys beyond those that all rows share.
        cold: a driver process of its own, started for this run, instead of a session that has copied before.
        store: where the copy goes: `s3`, `local` (files in a directory), `lines` (one file), `hdfs`, `postgresql`,
            `mariadb`, `kafka` from a file or a table, `mirror` from another broker, `restore` from a backup,
            `iceberg`, `opensearch`, or `java`: a Java plugin that does next to nothing.
        is_idle: the run is repeated, and the second one, which finds nothing new, is measured.
    """

    name: str
    about: str
    load: Load | LogLines | TableRows
    config: dict[str, str] = field(default_factory=dict)
    cold: bool = False
    store: str = "s3"
    is_idle: bool = False

    @property
    def needs_registry(self) -> bool:
        """Whether the run needs a Schema Registry."""
        return self.config.get("value.converter") in {
            c["value.converter"] for c in (AVRO_VALUES, JSON_SCHEMA, PROTOBUF)
        }


def all_rows(records: int) -> list[Row]:
    """Every row, for a load of `records`."""
    hours, one = Load(10, 24, records), Load(1, 24, records)
    large = Load(10, 24, records // 8, record_bytes=2_000)
    avro, envelopes = Load(10, 24, records, is_avro=True), Load(10, 24, records // 2, has_schemas=True)
    registered, json = Load(10, 24, records, is_json_schema=True), {**JSON, **_GZIP}
    protobuf, maps = Load(10, 24, records, is_protobuf=True), replace(avro, has_maps=True)
    nulls, arrays = Load(10, 24, records, has_nulls=True), replace(avro, has_arrays=True)
    main = [
        Row("raw-gzip", "raw lines, gzip", hours, {**RAW, **_GZIP}),
        Row("raw-none", "raw lines, not compressed", hours, RAW),
        Row("json-hourly", "JSON lines in 24 hourly directories, gzip", hours, json),
        Row("json-nulls", "JSON lines, hourly, every tenth record without a value, gzip", nulls, {**json, **_IGNORED}),
        Row("json-keys", "the same with keys in files of their own", replace(hours, has_keys=True), {**json, **_KEYS}),
        Row(
            "json-headers",
            "the same with headers in files of their own",
            replace(hours, has_headers=True),
            {**json, **_HEADERS},
        ),
        Row("parquet", "typed Parquet, zstd", hours, PARQUET),
        Row("envelope-parquet", "JSON with a schema in each message to typed Parquet, zstd", envelopes, ENVELOPE),
        Row("json-schema", "JSON with a registry to typed Parquet, zstd", registered, JSON_SCHEMA),
        Row("avro-parquet", "Avro with a registry to typed Parquet, zstd", avro, AVRO),
        Row("avro-parquet-3", "the same through three transformations", avro, {**AVRO, **THREE_STEPS}),
        Row("protobuf", "Protobuf to typed Parquet, zstd", protobuf, PROTOBUF),
        Row("avro-arrays", "Avro with an array in each record to typed Parquet, zstd", arrays, AVRO),
        Row("avro-maps", "Avro with a map in each record to typed Parquet, zstd", maps, AVRO),
        Row("parquet-3", "typed Parquet through three transformations", hours, {**PARQUET, **THREE_STEPS}),
        Row("iceberg", "typed columns into an Iceberg table in S3, zstd", hours, lakes.CONFIG, store=lakes.STORE),
        Row("iceberg-hourly", "the same in 24 hourly partitions", hours, lakes.BY_HOUR, store=lakes.STORE),
        Row("raw-dense", "raw lines, gzip at the level of Java's default", hours, {**RAW, **_GZIP_6}),
        Row("json-dense", "JSON lines, hourly, gzip at the level of Java's default", hours, {**JSON, **_GZIP_6}),
        Row("json-cold", "JSON lines, hourly: a whole run from process start", hours, json, cold=True),
    ]
    few = records // 4
    main += [
        Row(
            f"{row.name}-records",
            f"{row.about}, record by record",
            replace(row.load, records=few),
            {**row.config, **READS_HEADERS},
        )
        for row in main
        if row.name in _AGAINST_RECORDS
    ]
    main += [
        Row(f"{row.name}-2k", f"{row.about}, records of 2,000 bytes", large, row.config)
        for row in main
        if row.name in ("raw-gzip", "json-hourly", "parquet")
    ]
    main += [
        Row(f"local-{row.name}", f"{row.about}: local files", row.load, row.config, store="local")
        for row in main
        if row.name in ("raw-gzip", "raw-none", "raw-dense", "json-hourly", "parquet")
    ]
    main += [
        Row("file-sink", "values as lines of one local file: FileStreamSink", hours, store=file_sinks.STORE),
        Row("hdfs-json-hourly", "JSON lines in 24 hourly directories: HDFS", hours, HDFS_JSON, store="hdfs"),
        Row("hdfs-parquet", "typed Parquet, snappy: HDFS", hours, HDFS_PARQUET, store="hdfs"),
        Row("json-plain", "JSON lines in 24 hourly directories, not compressed", hours, JSON),
        Row("records-zstd", "whole records, Parquet, zstd", hours, {**RECORDS, "parquet.codec": "zstd"}),
        Row("records-none", "whole records, Parquet, not compressed", hours, {**RECORDS, "parquet.codec": "none"}),
        Row(
            "records-avro",
            "whole records, Avro, not compressed",
            hours,
            {**RECORDS, "format.class": _AVRO},
        ),
        Row("parquet-snappy", "typed Parquet, snappy", hours, {**PARQUET, "parquet.codec": "snappy"}),
    ]
    sweeps = [
        Row(f"partitions-{count}", f"JSON lines, hourly, {count} partitions", Load(count, 24, records), json)
        for count in (1, 2, 8, 200)
    ]
    sweeps += [
        Row(f"shared-{tasks}", f"JSON lines, 1 partition, tasks.max={tasks}", one, {**json, "tasks.max": str(tasks)})
        for tasks in (1, 2, 4)
    ]
    sweeps += [
        Row(f"directories-{count}", f"JSON lines, {count} directories", Load(2, count, records), {**json, **_ONE_FILE})
        for count in (1, 100, 5000)
    ]
    sweeps += [
        Row(f"backlog-{name}", f"JSON lines, hourly, {name} million records", replace(hours, records=size), json)
        for name, size in (("0.1", 100_000), ("1", 1_000_000), ("10", 10_000_000))
    ]
    late, few = Load(2, 48, records // 4, late_percent=20), Load(2, 48, records // 400, late_percent=20)
    cut = {**json, "flush.size": "10000"}
    of_files = [
        Row("late-compact", "a fifth late, 48 hours, files.per.partition=compact", late, {**cut, **_COMPACT}),
        Row("late-classic", "a fifth late, 48 hours", late, cut),
        Row("late-compact-few", "the same, fewer records, compact", few, {**cut, **_COMPACT}),
        Row("late-interval-few", "the same with rotate.interval.ms of an hour", few, {**cut, **_INTERVAL}),
    ]
    return (
        main
        + sweeps
        + of_files
        + _source_rows(records)
        + _table_rows(records)
        + _database_rows(avro)
        + _mirror_rows(records)
        + [Row(name, about, hours, config, store=restores.STORE) for name, about, config in _RESTORES]
        + [Row(name, about, hours, config, store=java_plugins.STORE) for name, about, config in _JAVA]
        + [Row("search", "JSON into an index of OpenSearch", Load(10, 24, records), search.CONFIG, store=search.STORE)]
    )


_RESTORES = (
    ("restore", "a backup in Parquet back into a topic, lz4", restores.CONFIG),
    ("restore-parquet", "values in Parquet back into a topic as JSON, lz4", restores.PARQUET_VALUES),
    ("restore-json", "JSON lines, gzip, back into a topic, lz4", restores.JSON_VALUES),
    ("restore-small", "the same from 9,000 objects in S3", restores.SMALL_OBJECTS),
)
_JAVA = (
    (
        "java-source",
        "a Java source that makes texts of 180 bytes, one task, a transaction a second",
        {"connector.class": java_plugins.SOURCE, **sources.BY_TIME},
    ),
    (
        "java-source-placed",
        "the same, and each text names its partition",
        {"connector.class": java_plugins.SOURCE, "placed": "true", **sources.BY_TIME},
    ),
    ("java-sink", "a Java sink that counts texts of 200 bytes, one task", {"connector.class": java_plugins.SINK}),
)


def _table_rows(records: int) -> list[Row]:
    rows, few, idle = TableRows(records), TableRows(records // 4), TableRows(200, tables=200)
    by_records = database_sources.BY_RECORDS
    new, bulk, one, json = (
        database_sources.NEW_ROWS, database_sources.BULK, database_sources.ONE_TASK, database_sources.JSON
    )  # fmt: skip
    changed, looking_back = database_sources.CHANGED, database_sources.LOOKING_BACK
    found = [
        ("json", "a table of PostgreSQL into a topic, JSON, mode bulk, two tasks", rows, {**bulk, **json}),
        ("avro", "the same, Avro with a registry", rows, {**bulk, **AVRO_VALUES}),
        ("protobuf", "the same, Protobuf with a registry", rows, {**bulk, **_PROTOBUF_VALUES}),
        ("protobuf-records", "Protobuf, record by record", few, {**bulk, **_PROTOBUF_VALUES, **by_records}),
        ("json-schema", "the same, JSON Schema with a registry", rows, {**bulk, **_JSON_SCHEMA_VALUES}),
        ("json-schema-records", "JSON Schema, record by record", few, {**bulk, **_JSON_SCHEMA_VALUES, **by_records}),
        ("json-one", "JSON, one task", rows, {**bulk, **json, **one}),
        ("json-new", "JSON, first load in mode timestamp+incrementing, two tasks", rows, {**new, **json}),
        ("json-changed", "JSON, first run with bulk.changed.only, one task", rows, {**changed, **json, **one}),
        (
            "json-lookback",
            "JSON, first load in mode timestamp with timestamp.lookback.ms, one task",
            rows,
            {**looking_back, **json, **one},
        ),
        ("idle", "200 tables without a new row", idle, {**new, **json, **database_sources.TOPICS}),
    ]
    return [
        Row(f"postgresql-{name}", about, load, config, store="kafka", is_idle=load is idle)
        for name, about, load, config in found
    ]


def _database_rows(load: Load) -> list[Row]:
    rows = [
        ("postgresql", "insert", "Avro with a registry into PostgreSQL, insert", database_sinks.INSERT),
        ("postgresql", "upsert", "the same, upsert of new keys", database_sinks.UPSERT),
        ("postgresql", "upsert-again", "the same, upsert of keys that exist", database_sinks.AGAIN),
        ("mariadb", "insert", "Avro with a registry into MariaDB, insert", database_sinks.INSERT),
        ("mariadb", "upsert", "the same, upsert of new keys", database_sinks.UPSERT),
    ]
    return [
        Row(f"{store}-{name}", about, load, {**AVRO_VALUES, **config}, store=store)
        for store, name, about, config in rows
    ]


def _mirror_rows(records: int) -> list[Row]:
    plain, headers = Load(10, 24, records), Load(10, 24, records, has_headers=True)
    rows = [
        ("mirror", "a topic of another broker, lz4, a transaction a second", plain, mirrors.BY_TIME),
        ("mirror-poll", "the same, a transaction for each batch", plain, mirrors.BY_BATCH),
        ("mirror-headers", "records with two headers, a transaction a second", headers, mirrors.BY_TIME),
    ]
    return [Row(name, about, load, config, store=mirrors.STORE) for name, about, load, config in rows]


def _source_rows(records: int) -> list[Row]:
    plain, packed = LogLines(records), LogLines(records, is_gzip=True)
    lines, fields = sources.PLAIN, sources.FIELDS
    stamped = {
        "transforms": "at",
        "transforms.at.type": f"{_TRANSFORMS}.InsertField$Value",
        "transforms.at.timestamp.field": "copied_at",
    }
    by_time, by_batch, without = sources.BY_TIME, sources.BY_BATCH, sources.NO_TRANSACTIONS
    rows = [
        ("plain", "log lines into a topic, a transaction a second", plain, {**lines, **by_time}),
        ("plain-poll", "the same, a transaction for each batch", plain, {**lines, **by_batch}),
        ("plain-alo", "the same at least once, without transactions", plain, {**lines, **without}),
        ("gzip", "log lines of a compressed file", packed, {**lines, **by_time}),
        ("regex", "log lines with six fields, JSON", plain, {**fields, **by_time}),
        ("regex-avro", "the same fields, Avro with a registry", plain, {**fields, **AVRO_VALUES, **by_time}),
        ("regex-insert", "the fields as JSON through InsertField", plain, {**fields, **stamped, **by_time}),
    ]
    return [Row(f"source-{name}", about, load, config, store="kafka") for name, about, load, config in rows]
