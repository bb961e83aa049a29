"""`status`, `runs`, `files`, `inspect`, `lint`, `doctor`: what they show of a connector that has run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import boto3
import pytest
from moto.server import ThreadedMotoServer

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.observe.inspecting.lint import small_files
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.spec import RunSpec
from tests.integration.cli.conftest import SECRET
from tests.support.command_line import run_command
from tests.support.copies.iceberg import iceberg_sink
from tests.support.processes.drivers import PROJECT
from tests.support.processes.forked_worker import ForkedWorker
from tests.support.servers.rest import worker_of
from tests.support.session.impatience import give_kafka

pytestmark = pytest.mark.integration


@pytest.fixture
def copied(installation, over_kafka, connector_file, unique_name, tmp_path, make_topic, produce):
    """A registered sink that has copied 30 records into 15 files of two, and fails on one more."""
    topic = make_topic()
    produce(topic, [(0, f"key {n}", json.dumps({"n": n, "secret": "x"}), n * 1000 + 1000) for n in range(30)])
    config = {
        "connector.class": "LocalSinkConnector",
        "topics": topic,
        "store.url": f"file://{tmp_path}/out",
        "format.class": "JsonFormat",
        "flush.size": "2",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "mask",
        "transforms.mask.type": "ReplaceField$Value",
        "transforms.mask.exclude": "secret",
    }
    file = connector_file(unique_name, **config)
    over_kafka("connectors", "create", file)
    report = run_connector(RunSpec({"name": unique_name, **config}, installation), engine=InProcessEngine())
    assert report.records == 30, report.error
    produce(topic, [(0, None, "no json", int(time.time() * 1000))])
    return unique_name, topic


def test_what_has_run_is_shown(copied, over_kafka, over_rest, worker_file):
    name, topic = copied
    row = next(line for line in over_kafka("status").out.splitlines() if line.startswith(name)).split()
    assert row[:6] == [name, "sink", "RUNNING", "0", "of", "1"]
    assert (row[6], row[8]) == ("1", "30")  # lag, records of the last run
    known = over_rest("status", "--json").result["connectors"][name]
    assert (known["status"]["connector"]["state"], "lag" in known) == ("RUNNING", False)

    runs = over_kafka("runs", name)
    assert runs.out.splitlines()[1].split()[-5:] == ["30", "15", "260", "B", "0"]
    missed = over_kafka("runs", f"{name}x")
    assert (missed.exit_code, f"Did you mean {name}?" in missed.err) == (2, True)
    assert "needs the brokers" in over_rest("runs", name).err

    files = over_kafka("files", name, "--since", "1d", "--json").result
    assert (files["count"], files["size_bytes"]) == (15, 260)
    assert [file["start"] for file in sorted(files["files"], key=lambda f: f["start"])] == list(range(0, 30, 2))
    assert {(file["topic"], file["partition"]) for file in files["files"]} == {(topic, 0)}
    assert over_kafka("files", name, "--limit", "3").out.splitlines()[-1] == "15 files, 260 B; the newest 3 are shown."
    assert over_kafka("files", name, "--since", "2999-01-01").out == "0 files, 0 B.\n"

    path = files["files"][0]["name"]
    records = over_kafka("inspect", "object", name, path, "--json").result["records"]
    assert [set(record) for record in records] == [{"n"}, {"n"}]
    assert over_kafka("inspect", "object", name, f"{path}x").exit_code == 2


def test_status_is_watched_until_it_is_interrupted(worker_file):
    words = [sys.executable, "-m", "airflow_connect.cli", "status", "--json", "--watch", "1", "--worker", worker_file]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert program.stdout is not None
    looks = [json.loads(program.stdout.readline()) for _ in range(2)]
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=20)
    assert (program.returncode, [look["command"] for look in looks]) == (130, ["status", "status"])


def test_records_are_shown_as_a_run_would_write_them(copied, over_kafka):
    name, topic = copied
    newest = over_kafka("inspect", "topic", name, "--limit", "2", "--json").result["records"]
    assert [(record["outcome"], record["value"]) for record in newest] == [("written", {"n": 29}), ("failed", None)]
    assert newest[0]["where"] == f"{topic}-0@29"
    assert "VALUE_CONVERTER" in newest[1]["error"]
    oldest = over_kafka("inspect", "topic", name, "--limit", "1", "--from-beginning")
    assert oldest.out.splitlines()[1].split() == [
        f"{topic}-0@0", "1970-01-01T00:00:01Z", "written", "key", "0", '{"n":', "0}",
    ]  # fmt: skip
    filtering = ["--set", "transforms=drop", "--set", "transforms.drop.type=Filter"]
    dropped = over_kafka("inspect", "topic", name, "--limit", "1", "--from-beginning", *filtering, "--json")
    assert [record["outcome"] for record in dropped.result["records"]] == ["dropped"]
    whole = ["--set", "store.kafka.records=true", "--set", "format.class=ParquetFormat"]
    whole += ["--set", "value.converter=ByteArrayConverter", "--set", "transforms="]
    backup = over_kafka("inspect", "topic", name, "--limit", "1", *whole, "--json").result["records"]
    assert [(one["outcome"], one["value"]["offset"]) for one in backup] == [("written", 30)], "no JSON, but bytes"


def test_offsets_of_all_sources_are_decoded(over_kafka, connector_file, unique_name, tmp_path, make_topic):
    (tmp_path / "in.txt").write_text("one\n")
    config = {"connector_class": "FileStreamSource", "file": f"{tmp_path}/in.txt", "topic": make_topic()}
    file, wanted = connector_file(unique_name, **config), tmp_path / "offsets.json"
    partition = {"filename": f"{tmp_path}/in.txt"}
    wanted.write_text(json.dumps([{"partition": partition, "offset": {"position": 4}}]))
    assert over_kafka("offsets", "set", file, "--file", wanted, "--yes").exit_code == 0
    mine = [o for o in over_kafka("inspect", "offsets", "--json").result["offsets"] if o["connector"] == unique_name]
    assert [(entry["partition"], entry["offset"]["position"]) for entry in mine] == [(partition, 4)]
    assert unique_name in over_kafka("inspect", "offsets").out
    refused = over_kafka("inspect", "topic", file)
    assert (refused.exit_code, "is a source" in refused.err) == (2, True)
    assert "does not write files" in over_kafka("files", file).err


def test_lint_warns_of_small_files_unknown_keys_and_records_that_kafka_deletes(
    over_kafka, connector_file, unique_name, tmp_path, make_topic, produce, installation
):
    topic = make_topic(config={"retention.ms": "600000"})
    produce(topic, [(0, None, "old", int(time.time() * 1000) - 500_000)])
    sink = {
        "connector_class": "LocalSinkConnector",
        "topics": topic,
        "store_url": f"file://{tmp_path}/out",
        "format_class": "JsonFormat",
        "flush_size": "2",
    }
    linted = over_kafka("lint", connector_file(unique_name, **sink, flush_sise="3"), "--json")
    (advices,) = linted.result["connectors"].values()
    assert linted.exit_code == 1
    warnings = [advice for advice in advices if advice["level"] == "warning"]
    assert [advice["about"] for advice in warnings] == ["flush.sise", f"{topic}-0"]
    assert "Kafka keeps records for 10 min 00 s" in warnings[1]["found"]
    wrong = over_kafka("lint", connector_file(unique_name, **{**sink, "flush_size": "x"}))
    assert (wrong.exit_code, "✗ flush.size (error)" in wrong.out) == (2, True)


def test_lint_warns_of_tables_of_a_lake_that_get_small_files_and_grow(
    over_kafka, connector_file, unique_name, tmp_path, make_topic
):
    sink = {
        "connector_class": "IcebergSinkConnector",
        "topics": make_topic(3),
        "iceberg_tables": "sales.orders",
        "iceberg_tables_auto-create-enabled": "true",
        "iceberg_tables_default-partition-by": "bucket(customer, 64)",
        "iceberg_catalog_type": "sql",
        "iceberg_catalog_uri": f"sqlite:///{tmp_path}/catalog.db",
    }
    linted = over_kafka("lint", connector_file(unique_name, **sink), "--json")
    (advices,) = linted.result["connectors"].values()
    assert linted.exit_code == 1
    assert [(advice["level"], advice["about"]) for advice in advices if advice["level"] != "note"] == [
        ("warning", "iceberg.tables.default-partition-by"),
        ("warning", "iceberg.tables.auto-create-props.write.metadata.delete-after-commit.enabled"),
    ]
    assert "192 files" in advices[-2]["found"]


def test_expire_snapshots_shows_what_would_expire_and_what_runs_need(
    over_kafka, connector_file, kafka, tmp_path, make_topic, produce
):
    sink = iceberg_sink(kafka, tmp_path, make_topic())
    for number in range(2):
        produce(sink.topic, [(0, None, json.dumps({"n": number}))])
        assert sink.run().records == 1
        table = sink.table()
        table.append(table.scan(limit=0).to_arrow().cast(table.schema().as_arrow()))
    config = {key.replace(".", "_"): value for key, value in sink.connector().items() if key != "name"}
    file = connector_file(sink.name, **config)

    def expired(*arguments):
        done = over_kafka("expire-snapshots", file, "--json", *arguments)
        assert done.exit_code == 0
        (of_table,) = done.result["tables"]
        return of_table["snapshots"], len(of_table["expired"]), of_table["young"], of_table["needed"]

    assert expired() == (4, 0, 4, 0)
    assert expired("--older-than", "0m", "--dry-run") == expired("--older-than", "0m") == (4, 1, 0, 3)
    shown = over_kafka("expire-snapshots", file, "--older-than", "0m", "--keep-last", "3")
    assert shown.out.split() == ["TABLE", "SNAPSHOTS", "EXPIRED", "YOUNG", "NEEDED", sink.table_name, *"3003"]
    with pytest.raises(SystemExit, match="2"):
        over_kafka("expire-snapshots", file, "--older-than", "a week")


def run_of(files, size_bytes, records):
    return {"files": files, "size_bytes": size_bytes, "records": records, "started_ms": 0, "ended_ms": 3_600_000}


def test_small_files_are_forecast_from_the_last_runs():
    (full,) = small_files({"flush.size": "1000"}, [run_of(100, 100_000_000, 100_000)])
    assert full.about == "flush.size" and full.to_do.endswith("Raise it to about 16777.")
    (partial,) = small_files({"flush.size": "1000"}, [run_of(100, 1_000_000, 2_000)])
    assert partial.about == "flush.on.end" and "100 files of 10.0 kB" in partial.found
    assert list(small_files({}, [run_of(100, 100 * (20 << 20), 1)])) == []
    assert list(small_files({}, [run_of(3, 10, 1), run_of(0, 0, 0)])) == []


def failed_checks(done):
    return {check["did"] for check in done.result["checks"] if not check["is_ok"]}


def test_doctor_says_what_it_did_what_it_found_and_what_to_do(
    over_kafka, connector_file, unique_name, s3, bucket, make_topic, sqlite_database, make_sink
):
    sink = make_sink(make_topic())
    config = {key: value for key, value in sink.connector().items() if key != "name"}
    file = connector_file(unique_name, **config)
    done = over_kafka("doctor", "--deep", file, "--json")
    checks = {check["did"]: check for check in done.result["checks"]}
    assert failed_checks(done) <= {"workers"}, checks  # Connectors of other tests are started, and no worker is there.
    assert "airflow-connect" in checks["versions"]["found"]
    assert f"{unique_name}: bucket" in checks and checks[f"{unique_name}: clock"]["found"].endswith("agree.")
    assert "has no lifecycle rules" in checks[f"{unique_name}: lifecycle rule"]["found"]
    assert f"group connect-{unique_name}" in checks[f"{unique_name}: topics and group"]["found"]

    gone = over_kafka("doctor", "--deep", connector_file(unique_name, **{**config, "s3.bucket.name": f"no-{bucket}"}))
    assert (gone.exit_code, f"no-{bucket}" in gone.out) == (1, True)

    database = {
        "connector_class": "JdbcSinkConnector",
        "topics": sink.topic,
        "connection_url": sqlite_database.jdbc_url,
    }
    found = over_kafka("doctor", "--deep", connector_file(f"{unique_name}-db", **database), "--json").result["checks"]
    assert "sqlite answers and accepts the login." in {check["found"] for check in found}
    assert SECRET not in done.out


@pytest.fixture(scope="module")
def moto_url():
    """A server with lifecycle rules, which s3proxy has not."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.mark.parametrize(
    ("days", "says"),
    [(None, "No rule aborts unfinished uploads"), (7, "aborted after 7 days"), (1, "Let it wait for 7 days")],
)
def test_doctor_reads_the_rule_that_aborts_uploads(
    over_kafka, connector_file, unique_name, moto_url, make_sink, make_topic, days, says
):
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=moto_url, **keys)
    client.create_bucket(Bucket=unique_name)
    if days:
        rule = {"ID": "x", "Status": "Enabled", "Filter": {"Prefix": ""}}
        rules = {"Rules": [{**rule, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days}}]}
        client.put_bucket_lifecycle_configuration(Bucket=unique_name, LifecycleConfiguration=rules)
    config = {**make_sink(make_topic()).connector(), "store.url": moto_url, "s3.bucket.name": unique_name}
    del config["name"]
    done = over_kafka("doctor", "--deep", connector_file(unique_name, **config), "--json")
    wrong = {f"{unique_name}: lifecycle rule"} if days == 1 else set()
    assert (failed_checks(done) - {"workers"}, says in done.out) == (wrong, True), done.out


def test_doctor_fails_if_connectors_are_started_and_no_worker_is_there_or_one_has_failed(kafka, unique_name, tmp_path):
    worker, file = worker_of(kafka.bootstrap, unique_name), tmp_path / "worker.json"
    file.write_text(json.dumps(worker))
    before = run_command("doctor", "--worker", file)
    assert (before.exit_code, f"None: {unique_name}-config does not exist." in before.out) == (0, True), before.out

    settings = ControlSettings.from_worker(worker)
    topics = StateTopics(settings)
    topics.open()
    herder, name = Herder(topics, settings, "me:1"), f"{unique_name}-c"
    herder.create(name, {"connector.class": "FileStreamSink", "topics": "t", "file": str(tmp_path / "f")})
    nobody = run_command("doctor", "--worker", file)
    assert (nobody.exit_code, "so nothing runs the 1 connector that is started" in nobody.out) == (1, True), nobody.out

    herder.stop(name)
    stopped = run_command("doctor", "--worker", file)
    assert (stopped.exit_code, "0 connectors are started, 1 paused or stopped." in stopped.out) == (0, True)

    herder.resume(name)
    herder.run_ended(name, herder.registered(name).offset, "It broke.", is_config=False)
    with ForkedWorker({**worker, "run.interval.seconds": "600"}):
        failed = run_command("doctor", "--worker", file)
    assert (failed.exit_code, f"Failed: {name}." in failed.out) == (1, True), failed.out
    assert f"1 worker is a member of group {unique_name}." in failed.out


def test_doctor_refuses_state_topics_that_would_forget_or_that_have_another_number_of_partitions(
    kafka, unique_name, make_topic, tmp_path
):
    forgets, divided = make_topic(), make_topic(partitions=2, config={"cleanup.policy": "compact"})
    own = {"offset.storage.topic": forgets, "config.storage.topic": divided}
    file = tmp_path / "worker.json"
    file.write_text(json.dumps({**worker_of(kafka.bootstrap, unique_name), **own}))
    done = run_command("doctor", "--deep", "--worker", file, "--json")
    assert failed_checks(done) == {"state topics", "registered connectors"}, done.out
    assert f"{forgets} has cleanup.policy=delete" in done.out
    assert f"{divided} has 2 partitions" in done.out


def test_doctor_tries_the_registry_of_a_connector_and_says_what_it_does_not_try(
    over_kafka, connector_file, unique_name, make_topic
):
    file = connector_file(
        unique_name,
        connector_class="ElasticsearchSinkConnector",
        topics=make_topic(),
        connection_url="http://127.0.0.1:1",
        value_converter="io.confluent.connect.avro.AvroConverter",
        value_converter_schema_registry_url=f"http://u:{SECRET}@127.0.0.1:1",
    )
    done = over_kafka("doctor", "--deep", file, "--json")
    checks = {check["did"]: check for check in done.result["checks"]}
    assert failed_checks(done) - {"workers"} == {f"{unique_name}: Schema Registry"}, done.out
    assert checks[f"{unique_name}: other systems"]["found"].startswith("Nothing was tried")
    assert SECRET not in done.out + done.err


def test_doctor_without_a_worker_file_looks_at_packages_and_java(monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONNECT_WORKER", raising=False)
    done = run_command("doctor")
    assert done.exit_code == 0, done.out + done.err
    assert "✓ versions" in done.out and "✓ Java" in done.out
    assert "0 failed. Only packages and Java: for brokers name --worker" in done.out


def test_doctor_without_brokers_still_makes_the_other_checks(tmp_path, monkeypatch):
    give_kafka(0.5, monkeypatch)
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    done = run_command("doctor", "--worker", file)
    assert done.exit_code == 1
    assert "✓ versions" in done.out and "✗ servers of the worker" in done.out
