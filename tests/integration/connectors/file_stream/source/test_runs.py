"""Files through whole runs on a real broker: killed, rotated, growing, shared anew; files of S3 and HDFS."""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_connect.devstack.s3 import S3Server
from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.kafka.clients import librdkafka
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import SKIP
from airflow_connect.runtime.driver.entry import plan_connector, run_connector
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.runtime.spec import ignore_events
from airflow_connect.testing.runs import run_here
from tests.devstack.hdfs import HdfsCluster
from tests.integration.connectors.file_stream.source.conftest import MakeLines
from tests.support.session.searching import KILL_ROUNDS

pytestmark = pytest.mark.integration

JSON = "org.apache.kafka.connect.json.JsonConverter"


def append(file: Path, lines: list[str]) -> list[str]:
    with file.open("a", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
    return lines


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_lines_arrive_once_and_the_next_run_finds_nothing(make_lines: MakeLines, tmp_path: Path, columnar: bool):
    source = make_lines(tmp_path / "a.log")
    wanted = append(tmp_path / "a.log", ["é1", "日本2", "😀3", *(f"line {n}" for n in range(5000))])
    report = source.run(columnar=columnar)
    assert (report.status, report.records) == ("done", len(wanted))
    assert source.run(columnar=columnar).records == 0
    wanted += append(tmp_path / "a.log", ["more"])
    assert source.run(columnar=columnar).records == 1
    assert source.lines() == wanted


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_limit_of_records_is_kept_to_the_line(make_lines: MakeLines, tmp_path: Path, columnar: bool):
    source = make_lines(tmp_path / "a.log")
    wanted = append(tmp_path / "a.log", [f"line {n}" for n in range(5000)])

    limited = source.run(columnar=columnar, run_max_records="3001")
    assert limited.source is not None
    assert (limited.records, limited.source.ended_by) == (3001, {"run.max.records": 1})
    rest = source.run(columnar=columnar, run_max_records="3001")
    assert rest.source is not None
    assert (rest.records, rest.source.ended_by) == (1999, {"end": 1})
    assert source.lines() == wanted


@pytest.mark.crash
def test_killed_rounds_of_a_file_that_grows_and_rotates(
    make_lines: MakeLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source, file, chance = make_lines(tmp_path / "app.log"), tmp_path / "app.log", random.Random(20261122)
    points = (*crash_points.SOURCE_DRIVER_POINTS, *crash_points.SOURCE_TASK_POINTS)
    wanted: list[str] = []
    for number in range(KILL_ROUNDS):
        wanted += append(file, [f"ü {number} {n}" for n in range(chance.randint(1, 40))])
        monkeypatch.setenv(SKIP, str(chance.randrange(3)))
        source.start(crash_at=chance.choice(points), batch_size=str(chance.randint(1, 9))).wait()
        if chance.random() < 0.5:
            for old in range(6, 0, -1):
                if (earlier := tmp_path / f"app.log.{old}").exists():
                    earlier.rename(tmp_path / f"app.log.{old + 1}")
            file.rename(tmp_path / "app.log.1")
    monkeypatch.delenv(SKIP)
    source.run()
    assert source.lines() == wanted


@pytest.mark.crash
def test_split_file_through_killed_runs_with_other_numbers_of_tasks(
    make_lines: MakeLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source, file, chance = make_lines(tmp_path / "big.log", split_bytes="300"), tmp_path / "big.log", random.Random(7)
    wanted = append(file, [f"line {n}" for n in range(200)])
    for _ in range(max(3, KILL_ROUNDS // 2)):
        wanted += append(file, [f"line {len(wanted) + n}" for n in range(20)])
        monkeypatch.setenv(SKIP, str(chance.randrange(5)))
        at = chance.choice(crash_points.SOURCE_TASK_POINTS)
        source.start(crash_at=at, tasks_max=str(chance.randint(1, 5)), batch_size="10").wait()
    monkeypatch.delenv(SKIP)
    source.run(tasks_max="3")
    assert sorted(source.lines()) == sorted(wanted)
    assert source.run(split_bytes="0").records == 0  # one offset for the file again


def test_file_that_is_written_rotated_and_deleted_while_runs_go_on(make_lines: MakeLines, tmp_path: Path):
    source, file = make_lines(f"{tmp_path}/app.log*"), tmp_path / "app.log"
    wanted = append(file, ["first"])
    done = threading.Event()

    def write() -> None:
        for number in range(60):
            wanted.extend(append(file, [f"line {number} {n}" for n in range(50)]))
            if number % 20 == 10:
                file.rename(tmp_path / f"app.log.{number}")
                append(file, [])
            done.wait(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            report = source.try_run(tasks_max="2")
            # A file that is renamed between the list of files and its reading ends a run; the next one finds it.
            assert report.error is None or report.error["code"] == "file.changed_meanwhile", report.error
    finally:
        writer.join()
    (tmp_path / "app.log.10").unlink() if source.run(tasks_max="2") else None
    source.run()
    assert sorted(source.lines()) == sorted(wanted)


def test_compressed_objects_of_a_bucket_and_new_ones_later(make_lines: MakeLines, s3: S3Server, bucket: str):
    client = s3.client()
    for name in ("a", "b"):
        body = gzip.compress("".join(f"{name} {n}\n" for n in range(1000)).encode())
        client.put_object(Bucket=bucket, Key=f"logs/2026/{name}.log.gz", Body=body)
    client.put_object(Bucket=bucket, Key="logs/other.txt", Body=b"other\n")
    source = make_lines(
        f"s3://{bucket}/logs/**/*.log*",
        store_url=s3.endpoint_url,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
    )
    assert source.run(tasks_max="2").records == 2000
    client.put_object(Bucket=bucket, Key="logs/2026/c.log", Body=b"c 0\nc 1\npart of")
    assert source.run(tasks_max="2").records == 2
    client.put_object(Bucket=bucket, Key="logs/2026/c.log", Body=b"c 0\nc 1\npart of a line\nc 3\n")
    assert source.run(tasks_max="2").records == 2
    wanted = [f"{name} {n}" for name in "ab" for n in range(1000)] + ["c 0", "c 1", "part of a line", "c 3"]
    assert sorted(source.lines()) == sorted(wanted)


def test_credentials_and_endpoint_of_an_airflow_connection_reach_the_tasks(
    make_lines: MakeLines, s3: S3Server, bucket: str
):
    s3.client().put_object(Bucket=bucket, Key="a.log", Body=b"one\ntwo\n")
    source = make_lines(f"s3://{bucket}/a.log*")
    aws = {"endpoint_url": s3.endpoint_url, "access_key_id": s3.access_key, "secret_access_key": s3.secret_key}
    report, _ = run_here(replace(source.spec(), aws=aws))
    assert (report.status, report.records, report.error) == ("done", 2, None)
    assert source.lines() == ["one", "two"]


def test_run_that_finds_nothing_starts_no_engine(make_lines: MakeLines, tmp_path: Path):
    class NoEngine:
        may_leave_duplicates = False

        def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
            raise AssertionError("there is nothing to do")

        def progress_host(self) -> str:
            raise AssertionError("there is nothing to do")

    source = make_lines(tmp_path / "a.log")
    append(tmp_path / "a.log", ["one"])
    assert plan_connector(source.spec()).tasks
    source.run()
    for _ in range(2):
        report = run_connector(source.spec(), ignore_events, NoEngine())
        assert (report.status, report.tasks, report.error) == ("empty", 0, None)
    assert not plan_connector(source.spec()).tasks
    append(tmp_path / "a.log", ["two"])
    assert source.run().records == 1
    assert source.lines() == ["one", "two"]


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_skipped_lines_move_the_offset_and_what_a_run_noticed_is_in_its_report(
    make_lines: MakeLines, tmp_path: Path, columnar: bool
):
    source = make_lines(tmp_path / "a.log", pattern_regex=r"(?P<n>\d+)", pattern_mismatch="skip")
    append(tmp_path / "a.log", ["no number"] * 3)
    report = source.run(columnar=columnar, value_converter=JSON)
    assert (report.status, report.records) == ("done", 0)
    assert source.run(columnar=columnar, value_converter=JSON).status == "empty"
    (tmp_path / "a.log").write_text("7\n")
    report = source.run(columnar=columnar, value_converter=JSON)
    assert report.records == 1
    (note,) = [note for note in report.notes if "a.log" in note]
    assert "it was truncated or replaced" in note and "It is read from its beginning" in note
    assert [document["payload"] for document in source.documents()] == [{"n": "7"}]


def test_what_the_driver_notices_comes_with_the_plan_and_what_a_task_notices_as_a_warning(
    make_lines: MakeLines, tmp_path: Path
):
    (tmp_path / "b.log").write_text("long before\n")
    source = make_lines(tmp_path / "a.log.gz", tmp_path / "b.log", errors_tolerance="all")
    source.run()
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"one\ntwo\n" * 9)[:-12])
    (tmp_path / "b.log").write_text("new\n")
    report, events = run_here(source.spec())
    (planned,) = [event["notes"] for event in events if event["event"] == "plan"]
    warned = [event["message"] for event in events if event["event"] == "warning"]
    assert [("b.log has 4 bytes" in note) for note in planned] == [True]
    assert [("a.log.gz" in note and "The rest of the file is skipped." in note) for note in warned] == [True]
    assert report.notes == (*planned, *warned)


def test_missing_bucket_and_wrong_keys_are_told(make_lines: MakeLines, s3: S3Server):
    source = make_lines(
        "s3://there-is-no-such-bucket/*.log", store_url=s3.endpoint_url, aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key, s3_part_retries="0",
    )  # fmt: skip
    error = source.try_run().error
    assert error is not None and "there-is-no-such-bucket" in error["message"]
    error = source.try_run(aws_secret_access_key="wrong").error
    assert error is not None and error["code"].startswith("s3.")


def test_files_in_hdfs_that_grow(make_lines: MakeLines, hdfs: HdfsCluster, unique_name: str):
    from hdfs_native import Client

    client = Client(hdfs.url)
    client.mkdirs(f"/{unique_name}", create_parent=True)
    with client.create(f"/{unique_name}/a.log") as out:
        out.write(b"".join(b"line %d\n" % n for n in range(3000)))
    source = make_lines(f"{hdfs.url}/{unique_name}/*.log")
    assert source.run().records == 3000
    with client.append(f"/{unique_name}/a.log") as out:
        out.write(b"appended\n")
    assert source.run().records == 1
    assert source.lines() == [*(f"line {n}" for n in range(3000)), "appended"]
    assert source.run().records == 0


def test_records_with_fields_and_dead_letters_in_one_transaction(
    make_lines: MakeLines, tmp_path: Path, unique_name: str
):
    file = tmp_path / "access.log"
    append(file, ["10.0.0.1 GET 200", "what", "10.0.0.2 PUT 500"])
    source = make_lines(
        file, pattern_grok="^%{IP:ip} %{WORD:verb} %{INT:status:int}$", pattern_mismatch="dead_letter",
        dead_letter_topic=f"{unique_name}-dead", value_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter_schemas_enable="false", topic_creation_default_partitions="1",
        topic_creation_default_replication_factor="1",
    )  # fmt: skip
    for columnar in (True, False):
        report = source.run(columnar=columnar)
        assert report.records in (3, 0)
    assert source.documents() == [
        {"ip": "10.0.0.1", "verb": "GET", "status": 200},
        {"ip": "10.0.0.2", "verb": "PUT", "status": 500},
    ]
    from airflow_connect.testing.topics import Topics

    (dead,) = Topics(source.bootstrap).read(f"{unique_name}-dead")
    assert dead.value() == b'"what"'
    assert dict(dead.headers() or [])["file.name"] == str(file).encode()


def test_exactly_once_of_the_standard_input_is_refused_in_the_words_of_kafka_connect(make_lines: MakeLines):
    error = make_lines().try_run(exactly_once_support="required").error
    assert error is not None and "does not support exactly-once semantics" in error["message"]


def test_report_says_why_lines_were_sent_by_the_slow_path(
    make_lines: MakeLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = make_lines(tmp_path / "a.log")
    wanted = append(tmp_path / "a.log", [f"line {n}" for n in range(5000)])
    monkeypatch.setattr(librdkafka, "_found_library", lambda: "Python is a debug build")
    report = source.run()
    (note,) = report.notes
    assert note == "Columns were sent to Kafka record by record, which is slower: Python is a debug build."
    assert source.lines() == wanted
