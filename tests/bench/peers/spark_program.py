"""The process of the peer of the file sinks: copies topics with Spark's own Kafka source, in one session.

A line of standard input is a copy, `{"bootstrap": ..., "topic": ..., "folder": ..., "format": ..., "options": {...}}`,
where the format is `text` (values as lines) or `parquet` (JSON values as typed columns). A line of standard output is
the seconds that it took. What is measured is what a program would do: read, select, write.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, timestamp_millis

COLUMNS = "id BIGINT, user STRING, event STRING, amount DOUBLE, at BIGINT, session STRING, note STRING"
"""`topics.SCHEMA` for Spark; `at` becomes a timestamp."""
READING = {
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "kafka.isolation.level": "read_committed",
    # What people set who want it to be fast.
    "kafka.max.poll.records": "10000",
    "kafka.fetch.max.bytes": "52428800",
    "kafka.max.partition.fetch.bytes": "4194304",
}


def main() -> None:
    """Arguments: the master, and the jars of the Kafka source with commas between."""
    # The JVM inherits standard output, and may write to it: it gets standard error, the answers keep the real one.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    master, jars = sys.argv[1:]
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # As the sink writes timestamps; Spark's default is a type that only it and Hive use.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master(master).config("spark.api.mode", "classic")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        for line in sys.stdin:
            started = time.monotonic()
            _copy(session, json.loads(line))
            print(time.monotonic() - started, file=answers, flush=True)
    finally:
        session.stop()


def _copy(session: SparkSession, asked: Mapping[str, Any]) -> None:
    reader = session.read.format("kafka").options(**READING)
    records = reader.option("kafka.bootstrap.servers", asked["bootstrap"]).option("subscribe", asked["topic"]).load()
    rows = _columns(records) if asked["format"] == "parquet" else records.select(_text())
    rows.write.options(**asked["options"]).format(asked["format"]).save(asked["folder"])


def _text() -> Column:
    return col("value").cast("string")


def _columns(records: DataFrame) -> DataFrame:
    fields = records.select(from_json(_text(), COLUMNS).alias("r")).select("r.*")
    return fields.withColumn("at", timestamp_millis(col("at")))


if __name__ == "__main__":
    main()
