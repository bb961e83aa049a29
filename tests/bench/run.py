"""`make bench`: what a copy costs, on a real broker and a real S3 server started for it on this machine.

Every row is a whole run with all guarantees on; afterwards every record is counted back in the bucket. Method and
numbers of one run: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from airflow_connect.devstack.kafka import KafkaBroker  # noqa: E402
from airflow_connect.devstack.s3 import S3Server  # noqa: E402
from airflow_connect.documents.run import DONE, EMPTY, RunReport  # noqa: E402
from airflow_connect.runtime.driver.process import DriverProcess  # noqa: E402
from airflow_connect.runtime.spec import RunSpec  # noqa: E402
from tests.bench import database_sinks as databases  # noqa: E402
from tests.bench import (  # noqa: E402  # noqa: E402
    database_sources,
    file_sinks,
    java_plugins,
    lakes,
    last_release,
    mirrors,
    restores,
    search,
    sources,
)
from tests.bench.arrivals import BUCKET, Arrived, check_arrivals, check_files, check_hdfs, remove, remove_hdfs  # noqa: E402
from tests.bench.database_sources import TableRows  # noqa: E402
from tests.bench.last_release import Figure  # noqa: E402
from tests.bench.output import COLUMNS, Measured, Progress, figure_of, line, median, write_runs  # noqa: E402
from tests.bench.own_code import measure_own  # noqa: E402
from tests.bench.parse_dags import measure_parse  # noqa: E402
from tests.bench.peers.pairs import PEERS, Places, rows_with_peers  # noqa: E402
from tests.bench.peers.side_by_side import measure_pairs  # noqa: E402
from tests.bench.processes import TreeSampler, cpu_seconds  # noqa: E402
from tests.bench.rows import Row, all_rows  # noqa: E402
from tests.bench.sources import LogLines  # noqa: E402
from tests.bench.stages import measure_stages  # noqa: E402
from tests.bench.state_week import measure_state  # noqa: E402
from tests.bench.topics import Load, fill, register  # noqa: E402
from tests.devstack.hdfs import HdfsCluster  # noqa: E402
from tests.devstack.schema_registry import SchemaRegistry  # noqa: E402
from tests.support.kafka_data import create_topic, delete_topic  # noqa: E402

SHARED_MEMORY = Path("/dev/shm")
MASTER = "local[2]"


class Bench:
    """The servers, the warm process, and the topics that are filled already."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        """Start both servers; their data lies in `folder`."""
        self._stack = stack
        self._folder, self._files, self._logs = folder, folder / "files", folder / "logs"
        self.kafka = stack.enter_context(KafkaBroker.start(folder / "kafka", heap_mb=1024))
        self.s3 = stack.enter_context(S3Server.start(folder / "s3", heap_mb=1024))
        self.s3.client().create_bucket(Bucket=BUCKET)
        self._filled: set[Load | LogLines] = set()
        self._registry: SchemaRegistry | None = None
        self._warm: subprocess.Popen[str] | None = None
        self._hdfs: HdfsCluster | None = None
        self._databases = databases.Databases(stack, folder)
        self._mirrors = mirrors.Mirrors(stack, folder, self.kafka)
        self._restores = restores.Restores(folder / "backups", self.kafka, self.s3)
        self._java = java_plugins.JavaPlugins(stack, folder, self.kafka)
        self._copies: dict[str, Any] = {mirrors.STORE: self._mirrors, restores.STORE: self._restores}
        self._copies |= {lakes.STORE: lakes.Lakes(folder, self.kafka, self.s3), java_plugins.STORE: self._java}
        self._copies |= {file_sinks.STORE: file_sinks.LineFiles(self._files)}
        self._search = search.SearchServer(stack, folder)
        self.places = Places(self.kafka, self._files, self._logs, self._mirrors, MASTER)

    def measure(self, row: Row) -> Measured:
        """Run a row once and count what arrived."""
        if row.store == mirrors.STORE and isinstance(row.load, Load):
            self._mirrors.fill(row.load, Progress(f"filling {row.load.topic}", row.load.records))
        else:
            self._fill(row.load)
        if row.store == restores.STORE and isinstance(row.load, Load):
            self._restores.back_up(row.load, row.config, self._run_warm)
        prefix = f"d{uuid.uuid4().hex[:8]}"
        if row.store == "kafka":
            create_topic(self.kafka.bootstrap, f"{row.name}-{prefix}")
        connector = self._connector(row, prefix)
        if row.is_idle:
            self._run_warm(connector)
        before = cpu_seconds(self.kafka.pid), self._store_cpu_s(row)
        run = self._run_cold if row.cold else self._run_warm
        seconds, cpu, peak, report = run(connector)
        servers = cpu_seconds(self.kafka.pid) - before[0], self._store_cpu_s(row) - before[1]
        arrived = self._arrived(row, prefix)
        expected = EMPTY if row.is_idle else DONE
        problem = arrived.problem if report.status == expected else f"{report.status}: {report.error}"
        copy_seconds = report.phases_ms.get("copy", 0) / 1000
        millions = row.load.records / 1e6
        return Measured(
            row=row.name,
            records=row.load.records,
            seconds=round(seconds, 2),
            copy_seconds=round(copy_seconds, 2),
            records_per_s=round(row.load.records / seconds),
            copy_records_per_s=round(row.load.records / copy_seconds) if copy_seconds else 0,
            cpu_s_per_million=round(cpu / millions, 2),
            kafka_cpu_s_per_million=round(servers[0] / millions, 2),
            store_cpu_s_per_million=round(servers[1] / millions, 2),
            peak_memory_mb=peak >> 20,
            objects=arrived.objects,
            mb_per_million=round(arrived.size_bytes / 1e6 / millions, 1),
            load_average=round(os.getloadavg()[0], 1),
            problem=problem,
        )

    def say_peer(self, row: Row, ours: Measured) -> str:
        """Print what another program needs for the same, where the load has one; returns what went wrong."""
        if row.store == search.STORE and isinstance(row.load, Load):
            say = Progress("writing the documents for the peers", row.load.records)
            return self._search.say_peers(row.load, ours.copy_records_per_s, say)
        if row.store not in (mirrors.STORE, lakes.STORE, java_plugins.STORE):
            return ""
        rate = ours.records_per_s if row.store == java_plugins.STORE else ours.copy_records_per_s
        return str(self._copies[row.store].say_peer(row.load, ours.cpu_s_per_million, rate))

    def _arrived(self, row: Row, prefix: str) -> Arrived:
        """Count what a run has written, and remove it."""
        if row.store == "kafka":
            topic = f"{row.name}-{prefix}"
            is_table = isinstance(row.load, TableRows)
            numbers = database_sources.numbers_of(row.config) if is_table else sources.line_numbers
            records = 0 if row.is_idle else row.load.records
            size, problem = sources.check_topic(self.kafka.bootstrap, topic, records, numbers)
            delete_topic(self.kafka.bootstrap, topic)
            return Arrived(1, size, problem)
        if row.store in self._copies and isinstance(row.load, Load):
            return Arrived(row.load.partitions, *self._copies[row.store].check(f"{row.name}-{prefix}", row.load))
        if row.store == search.STORE:
            return Arrived(1, *self._search.check(prefix, row.load.records))
        if row.store in databases.STORES:
            return Arrived(1, *self._databases.check(row.store, prefix, row.load.records))
        if row.store == "local":
            arrived = check_files(self._files / prefix, row.load.records)
            shutil.rmtree(self._files / prefix, ignore_errors=True)
            return arrived
        if row.store == "hdfs":
            directory = f"{self.hdfs.url}/{prefix}"
            arrived = check_hdfs(directory, row.load.records)
            remove_hdfs(directory)
            return arrived
        arrived = check_arrivals(self.s3, BUCKET, prefix + "/", row.load.records)
        remove(self.s3, BUCKET, prefix + "/")
        return arrived

    @property
    def hdfs(self) -> HdfsCluster:
        """A NameNode and a DataNode, started when they are needed first."""
        if self._hdfs is None:
            self._hdfs = self._stack.enter_context(HdfsCluster.start(self._folder / "hdfs", heap_mb=1024))
        return self._hdfs

    @property
    def registry(self) -> SchemaRegistry:
        """Started when it is needed first."""
        if self._registry is None:
            self._registry = self._stack.enter_context(SchemaRegistry.start())
        return self._registry

    def _store_cpu_s(self, row: Row) -> float:
        """CPU time of the servers that hold the files; Kafka's has a column of its own."""
        if isinstance(row.load, TableRows):
            return self._databases.cpu_s("postgresql")
        if row.store in ("kafka", restores.STORE, java_plugins.STORE, file_sinks.STORE):
            return 0.0
        if row.store == mirrors.STORE:
            return self._mirrors.cpu_s()
        if row.store == search.STORE:
            return self._search.cpu_s()
        if row.store in databases.STORES:
            return self._databases.cpu_s(row.store)
        if row.store == "hdfs":
            return sum(cpu_seconds(node.pid) for node in (self.hdfs.namenode, *self.hdfs.datanodes))
        return cpu_seconds(self.s3.pid)

    def warm_up(self, rows: Sequence[Row]) -> None:
        """Start the session and let it copy a little: to files, and as the rows do that write elsewhere.

        A session that has only rows of databases copies no files: what workers import for those would count for them.
        """
        load = Load(2, 2, 20_000)
        elsewhere = ("kafka", *self._copies, search.STORE, *databases.STORES)
        for store in elsewhere:
            if any(row.store == store for row in rows):
                problem = self.measure(next(row for row in all_rows(load.records) if row.store == store)).problem
                if problem:
                    raise RuntimeError(f"The warm-up failed: {problem}")
        if all(row.store in elsewhere for row in rows):
            return
        self._fill(load)
        for row in all_rows(load.records)[:4]:
            prefix = f"d{uuid.uuid4().hex[:8]}"
            report = self._run_warm(self._connector(Row(row.name, "", load, row.config), prefix))[3]
            if report.status != "done":
                raise RuntimeError(f"The warm-up failed: {report.error}")
            remove(self.s3, BUCKET, prefix + "/")

    def _fill(self, load: Load | LogLines | TableRows) -> None:
        if isinstance(load, TableRows):
            self._databases.database_of(load, Progress(f"filling {load.database}", load.records))
            return
        if load in self._filled:
            return
        if isinstance(load, LogLines):
            say = Progress(f"writing {load.name}", load.records)
            load.write(self._logs, say)
        else:
            say = Progress(f"filling {load.topic}", load.records)
            schema_id = register(self.registry.url, load) if load.needs_registry else 0
            fill(self.kafka.bootstrap, load, schema_id, say)
        say.end()
        self._filled.add(load)

    def _run_warm(self, connector: dict[str, Any]) -> tuple[float, float, int, RunReport]:
        if self._warm is None:
            # The runner's log goes to a file: a table on the terminal is hard to read with Spark's warnings in it.
            log = self._log = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable}
            command = [sys.executable, "-m", "tests.bench.runner"]
            self._warm = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=REPOSITORY,
            )
            self._stack.callback(self._stop_warm)
        process, started = self._warm, time.monotonic()
        with TreeSampler(process.pid) as sampler:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"connector": connector, "worker": self._worker()}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            seconds = time.monotonic() - started
        if not line:
            self._log.seek(0)
            tail = self._log.read().decode("utf-8", "replace")[-3000:]
            raise RuntimeError(f"The measured process ended without a report. The end of its log:\n{tail}")
        return seconds, sampler.used_s, sampler.peak_bytes, RunReport.from_json(json.loads(line))

    def _run_cold(self, connector: dict[str, Any]) -> tuple[float, float, int, RunReport]:
        before, started = _children_cpu_s(), time.monotonic()
        with DriverProcess(RunSpec(connector, self._worker())) as driver, TreeSampler(driver.pid) as sampler:
            for _ in driver.events():
                pass
            report = driver.wait()
            seconds = time.monotonic() - started
        if isinstance(report, int):
            raise RuntimeError(f"The driver ended with {report}: {driver.log_tail}")
        return seconds, max(sampler.cpu_s, _children_cpu_s() - before), sampler.peak_bytes, report

    def _stop_warm(self) -> None:
        if self._warm is not None:
            assert self._warm.stdin is not None
            self._warm.stdin.close()
            self._warm.wait(60)

    def _worker(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.kafka.bootstrap,
            "group.id": "bench",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            **{f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")},
            **self._java.worker(),
            "spark.master": MASTER,
        }

    def _connector(self, row: Row, prefix: str) -> dict[str, str]:
        if isinstance(row.load, LogLines):
            return sources.connector(f"{row.name}-{prefix}", self._logs, row.load, {**row.config, **self._schemas(row)})
        if isinstance(row.load, TableRows):
            url = self._databases.database_of(row.load, lambda done: None)
            config = {**row.config, **self._schemas(row)}
            return database_sources.connector(f"{row.name}-{prefix}", url, row.load, config)
        if row.store in self._copies:
            return self._copies[row.store].connector(f"{row.name}-{prefix}", row.load, row.config)
        return {
            "name": f"{row.name}-{prefix}",
            "tasks.max": "2",
            "topics": row.load.topic,
            **(
                {}
                if row.store in (search.STORE, *databases.STORES)
                else {"topics.dir": prefix, "flush.size": "1000000"}
            ),
            **self._store(row, prefix),
            **row.config,
            **self._schemas(row),
        }

    def _schemas(self, row: Row) -> dict[str, str]:
        """Where a converter finds the schemas of a registry."""
        return {"value.converter.schema.registry.url": self.registry.url} if row.needs_registry else {}

    def _store(self, row: Row, prefix: str) -> dict[str, str]:
        if row.store == search.STORE and isinstance(row.load, Load):
            return self._search.connector(prefix, row.load)
        if row.store in databases.STORES:
            own = {key: value for key, value in row.config.items() if key in databases.AGAIN}
            return self._databases.connector(row.store, prefix, own, row.load.records)
        if row.store == "local":
            return {"connector.class": "LocalSink", "store.url": f"file://{self._files}"}
        if row.store == "hdfs":
            return {"connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector", "store.url": self.hdfs.url}
        return {
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "s3.bucket.name": BUCKET,
            "s3.region": self.s3.region,
            "store.url": self.s3.endpoint_url,
            "aws.access.key.id": self.s3.access_key,
            "aws.secret.access.key": self.s3.secret_key,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        }


def _children_cpu_s() -> float:
    """CPU time of the children of this process that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main() -> int:
    """Run the rows that were asked for, print the table, write the CSV; 1 when a record was lost or doubled."""
    asked = _arguments()
    if asked.stages:
        return measure_stages()
    if asked.state:
        return measure_state()
    if asked.parse:
        return measure_parse()
    if asked.own:
        return measure_own()
    rows = [row for row in all_rows(asked.records) if not asked.rows or row.name in asked.rows]
    rows = rows_with_peers(rows) if asked.peers else rows
    last = last_release.read()
    folder = SHARED_MEMORY if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK) else None
    results: list[Measured] = []
    with ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="airflow-connect-bench-", dir=folder)))
        bench = Bench(stack, data)
        if asked.peers:
            return measure_pairs(bench, rows, asked.repeat, keep=asked.keep)
        if any(not row.cold for row in rows):
            bench.warm_up(rows)
        print(line([*(heading for heading, _ in COLUMNS), "of last"]), flush=True)
        figures: list[Figure] = []
        try:
            for row in rows:
                runs = _measure(bench, row, asked.repeat, last)
                results += runs
                figures += [] if any(run.problem for run in runs) else [figure_of(row, median(runs))]
        finally:
            write_runs(results)
            if asked.keep:
                last_release.keep(figures)
    return int(any(run.problem for run in results))


def _measure(bench: Bench, row: Row, repeat: int, last: Mapping[str, Figure]) -> list[Measured]:
    """Run a row, print the median of its runs and its ratio to the last release, say what went wrong."""
    runs = [bench.measure(row) for _ in range(repeat)]
    found = median(runs)
    ratio = last_release.compared(row.name, found.records, found.copy_records_per_s, found.cpu_s_per_million, last)
    print(line([*(show(found) for _, show in COLUMNS), ratio]), flush=True)
    if last_release.is_slower(row.name, found.records, found.copy_records_per_s, last):
        print(f"  SLOWER {row.name}: less than {last_release.SLOWER} of the rate of the last release", flush=True)
    problems = [f"{run.row}: {run.problem}" for run in runs if run.problem]
    problems += [problem] if (problem := bench.say_peer(row, median(runs))) else []
    for problem in problems:
        print(f"  FAILED {problem}", flush=True)
    return runs


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=lambda text: set(text.split(",")), default=set(), help="names, comma between")
    parser.add_argument("--stages", action="store_true", help="converters and transformations by themselves, 2 minutes")
    parser.add_argument("--state", action="store_true", help="start of a run after a week of 200 connectors, a minute")
    parser.add_argument("--parse", action="store_true", help="parsing a folder of 300 connectors, half a minute")
    parser.add_argument("--own", action="store_true", help="code of our own against libraries, two minutes")
    parser.add_argument(
        "--peers", action="store_true", help="rows beside other programs that copy the same, ten minutes"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write the figures to their CSV file in docs, and to its page"
    )
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=1, help="runs of each row; the table shows the median by CPU")
    asked = parser.parse_args()
    known = set(PEERS) if asked.peers else {row.name for row in all_rows(asked.records)}
    if asked.rows - known:
        parser.error(f"unknown rows {sorted(asked.rows - known)}; there are {', '.join(sorted(known))}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
