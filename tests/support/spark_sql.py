"""Spark SQL in a process of its own: what another program sees of files and tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

Rows = list[list[str | None]]

PROJECT = Path(__file__).parents[2]


def spark_sql(queries: Sequence[str], folder: Path, metastore_uri: str = "") -> list[Rows]:
    """Rows of each query, values as text.

    Args:
        queries: a path is read as parquet.`file:///path`.
        folder: for Spark's own files.
        metastore_uri: whose tables there are, or "".
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.spark_sql", str(folder), metastore_uri],
        input=json.dumps(queries),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers: list[Rows] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _main(folder: str, metastore_uri: str) -> None:
    from pyspark.sql import SparkSession

    from airflow_connect.jvm.java import java_home

    os.environ["JAVA_HOME"] = java_home()
    builder = SparkSession.builder.master("local[1]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
    }
    if metastore_uri:
        settings |= {"spark.hadoop.hive.metastore.uris": metastore_uri, "spark.sql.catalogImplementation": "hive"}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    answers = [
        [[value if value is None else str(value) for value in row] for row in spark.sql(query).collect()]
        for query in json.load(sys.stdin)
    ]
    spark.stop()
    print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
