"""File connectors that a live Kafka Connect worker and we run in turn: no line is lost, none comes twice.

One file, so that one worker does for all.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_connect.control.client.over_kafka import KafkaConnectors
from airflow_connect.control.client.rest import ConnectRest
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.migration.judging import judge
from airflow_connect.control.migration.moving import move
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.worker import WorkerSettings, work
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError, NotStoppedError, UnavailableError
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.testing.runs import run_here
from airflow_connect.testing.topics import Topics
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.connect_worker import ConnectWorker
from tests.integration.connect_handover.conftest import HANDOVER_S, Shared, our_worker
from tests.support.command_line import Done, run_command
from tests.support.copies.s3 import InProcessEngine
from tests.support.kafka_data import create_topic
from tests.support.servers.rest import send
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
SOAK = bool(os.environ.get("AIRFLOW_CONNECT_SOAK"))
ROUNDS = 20 if SOAK else 1
KILLED_AT = (
    *((crash_points.SOURCE_TASK_OPENED, crash_points.SOURCE_TASK_SENT) if SOAK else ()),
    crash_points.SOURCE_TASK_STORED,
)
MIXED = "aé日😀 1"


@dataclass
class Moving:
    """What the how-to page moves.

    Attributes:
        page: its text, with names and paths of this test.
    """

    worker: ConnectWorker
    topic: str
    folder: Path
    page: str

    def block(self, info: str, name: str = "") -> str:
        """A fenced block of the page, behind a comment with its name."""
        before = f"<!-- {name} -->\n" if name else ""
        found = re.search(rf"{before}```{info}\n(.*?)```", self.page, re.DOTALL)
        assert found is not None
        return found[1]

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        """The page's connectors, on a topic of this test."""
        found = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", self.page, re.DOTALL)]
        topic = {"topic": self.topic, "topics": self.topic}
        return {c["name"]: {key: topic.get(key, value) for key, value in c.items()} for c in found}

    @property
    def names(self) -> list[str]:
        """Sink, source."""
        return sorted(self.configs)

    @property
    def worker_file(self) -> Path:
        """Of our installation."""
        return self.folder / "worker.properties"

    def written(self) -> list[str]:
        """Lines of the sink's file."""
        file = self.folder / "out.txt"
        return file.read_text().splitlines() if file.exists() else []

    def run_ours(self, name: str) -> RunReport:
        """One run of a connector that is registered in our installation."""
        connectors = KafkaConnectors(read_worker_file(self.worker_file))
        return run_here(connectors.spec(name))[0]


def grow(source: Shared, wanted: list[str], chance: random.Random, alphabet: str = MIXED) -> None:
    """More lines in the file, of random lengths, empty ones among them."""
    more = ["".join(chance.choices(alphabet, k=chance.randint(0, 30))) for _ in range(chance.randint(1, 40))]
    source.append(*more)
    wanted.extend(more)


def filename(source: Shared) -> dict[str, str]:
    """The source partition of the file."""
    return {"filename": str(source.file)}


@pytest.mark.crash
@pytest.mark.parametrize(("alphabet", "rounds"), [("abc 123", ROUNDS), (MIXED, 1)], ids=["ascii", "not-ascii"])
def test_worker_then_ours_then_worker_copy_each_line_once(shared_source: Shared, alphabet: str, rounds: int):
    """Once only where text is not ASCII: what a worker adds to an offset of ours means neither characters nor bytes."""
    chance, wanted = random.Random(alphabet), list[str]()
    for _ in range(rounds):
        grow(shared_source, wanted, chance, alphabet)
        shared_source.let_worker_copy(wanted)
        grow(shared_source, wanted, chance, alphabet)
        shared_source.run_ours(offset_takeover="characters")
        assert shared_source.lines() == wanted
        grow(shared_source, wanted, chance, alphabet)
        shared_source.let_worker_copy(wanted)


def test_worker_that_went_on_from_ours_hands_back_ascii_lines_taken_as_bytes(shared_source: Shared):
    shared_source.append("é1", "日本2", "😀3")
    wanted = ["é1", "日本2", "😀3"]
    shared_source.run_ours()
    shared_source.append("four", "five")
    shared_source.let_worker_copy([*wanted, "four", "five"])
    shared_source.append("six é")
    shared_source.run_ours(offset_takeover="bytes")
    assert shared_source.lines() == [*wanted, "four", "five", "six é"]


def test_offsets_altered_at_the_worker_count_for_us_and_ours_are_shown_there(shared_source: Shared):
    rest, name = shared_source.worker.rest, shared_source.name
    shared_source.append("one", "two", "three")
    shared_source.let_worker_copy(["one", "two", "three"])
    assert rest.offsets(name) == [{"partition": filename(shared_source), "offset": {"position": 14}}]
    rest.alter_offsets(name, [{"partition": filename(shared_source), "offset": {"position": 4}}])
    assert shared_source.run_ours().records == 2
    assert shared_source.lines() == ["one", "two", "three", "two", "three"]
    (ours,) = rest.offsets(name)
    assert (ours["partition"], ours["offset"]["position"]) == (filename(shared_source), 14)
    rest.alter_offsets(name, [{"partition": filename(shared_source), "offset": None}])
    assert shared_source.run_ours().records == 3


def test_run_of_a_connector_that_a_live_worker_runs_is_refused_until_it_is_stopped(shared_source: Shared):
    rest, name = shared_source.worker.rest, shared_source.name
    shared_source.append("one")
    shared_source.let_worker_run()
    wait_until(lambda: shared_source.lines() == ["one"], "the worker's line", HANDOVER_S, every_s=0.1)
    refused = shared_source.try_ours()
    assert (refused.status, refused.error and refused.error["code"]) == ("failed", "group.not_empty")
    assert f"{name} is STARTED on 1 live Kafka Connect worker of group" in str(refused.error)
    rest.pause(name)
    assert "is PAUSED on 1 live" in str(shared_source.try_ours().error)
    rest.stop(name)
    shared_source.append("two")
    assert shared_source.run_ours().records == 1
    rest.delete(name)
    shared_source.append("three")
    assert shared_source.run_ours().records == 1
    assert shared_source.lines() == ["one", "two", "three"]


def test_a_worker_of_ours_does_not_start_as_long_as_one_of_kafka_connect_lives(shared_source: Shared):
    settings = WorkerSettings.from_worker({**shared_source.ours, "listeners": "http://127.0.0.1:0"})
    told = list[str]()
    with pytest.raises(NotStoppedError, match=r"1 live Kafka Connect worker of group"):
        work(settings, InProcessEngine(), threading.Event(), told.append)
    assert told == []


@pytest.mark.crash
@pytest.mark.parametrize("point", KILLED_AT)
def test_worker_fences_a_run_that_was_killed_in_its_transaction(shared_source: Shared, point: str):
    chance, wanted = random.Random(point), list[str]()
    for _ in range(ROUNDS):
        grow(shared_source, wanted, chance, "abc")
        shared_source.let_worker_copy(wanted)
        grow(shared_source, wanted, chance, "abc")
        shared_source.kill_ours(point)
        shared_source.let_worker_copy(wanted)


@pytest.mark.crash
def test_run_goes_on_where_a_killed_worker_was(kafka: KafkaBroker, shared_source: Shared):
    """Refused while the group's coordinator still counts on the worker; then the worker's transactions are fenced."""
    group, topics = f"{shared_source.name}-workers", shared_source.ours
    settings = {key: value for key, value in topics.items() if key.endswith("storage.topic")}
    own = {key: f"{group}-{key.split('.')[0]}" for key in settings}
    more = {"exactly.once.source.support": "enabled", "session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
    with ConnectWorker.start(kafka.bootstrap, group, {**own, **more}) as worker:
        killed = Shared(
            worker, {**topics, **own, "group.id": group}, shared_source.name, shared_source.topic, shared_source.file,
            shared_source.config,
        )  # fmt: skip
        killed.append(*(f"line {n}" for n in range(20)))
        killed.let_worker_run()
        wait_until(lambda: len(killed.lines()) == 20, "the worker's lines", HANDOVER_S, every_s=0.1)
        worker.kill()
        killed.append("the last")
        assert "live Kafka Connect worker" in str(killed.try_ours().error)
        wait_until(lambda: killed.try_ours().status == "done", "the group without members", HANDOVER_S, every_s=0.5)
        assert killed.lines() == [*(f"line {n}" for n in range(20)), "the last"]


def written(sink: Shared) -> list[str]:
    """Lines of the file."""
    return sink.file.read_text("utf-8").splitlines() if sink.file.exists() else []


def let_worker_write(sink: Shared, wanted: list[str]) -> None:
    """Let the worker run the sink until the file holds `wanted`, then stop it."""
    sink.let_worker_run()
    wait_until(lambda: len(written(sink)) >= len(wanted), f"the worker's {wanted}", HANDOVER_S, every_s=0.1)
    sink.worker.rest.stop(sink.name)
    assert written(sink) == wanted


def test_worker_then_ours_then_worker_write_each_line_once(shared_sink: Shared, produce: TopicProducer):
    wanted: list[str] = []

    def more(*values: str) -> None:
        produce(shared_sink.topic, [(0, None, value) for value in values])
        wanted.extend(values)

    more("one", "zwei é")
    let_worker_write(shared_sink, wanted)
    more("three", "日本4")
    assert shared_sink.run_ours().status == "done"
    assert written(shared_sink) == wanted
    (ours,) = shared_sink.worker.rest.offsets(shared_sink.name)
    assert ours["offset"] == {"kafka_offset": 4}
    more("five")
    let_worker_write(shared_sink, wanted)
    more("six")
    shared_sink.run_ours()
    assert written(shared_sink) == wanted


def test_offsets_altered_at_the_worker_count_for_our_run(shared_sink: Shared, produce: TopicProducer):
    produce(shared_sink.topic, [(0, None, value) for value in ("one", "two", "three")])
    let_worker_write(shared_sink, ["one", "two", "three"])
    place = {"kafka_topic": shared_sink.topic, "kafka_partition": 0}
    shared_sink.worker.rest.alter_offsets(shared_sink.name, [{"partition": place, "offset": {"kafka_offset": 2}}])
    shared_sink.run_ours()
    assert written(shared_sink) == ["one", "two", "three", "three"]


def test_run_of_a_sink_that_a_live_worker_runs_is_refused(shared_sink: Shared, produce: TopicProducer):
    produce(shared_sink.topic, [(0, None, "one")])
    shared_sink.let_worker_run()
    wait_until(lambda: written(shared_sink) == ["one"], "the worker's line", HANDOVER_S, every_s=0.1)
    refused = shared_sink.try_ours()
    assert refused.status == "failed"
    assert f"connect-{shared_sink.name}" in str(refused.error)
    shared_sink.worker.rest.stop(shared_sink.name)
    assert shared_sink.run_ours().status == "empty"


def test_connector_that_the_worker_refuses_or_that_fails_is_said_in_its_words(shared_sink: Shared):
    rest = shared_sink.worker.rest
    with pytest.raises(DevStackError, match="Failed to find any class that implements Connector"):
        rest.create(shared_sink.name, {"connector.class": "NoSuchSink"})
    shared_sink.let_worker_run()
    with pytest.raises(DevStackError, match="Connectors must be in the STOPPED state"):
        rest.alter_offsets(shared_sink.name, [{"partition": {"kafka_topic": "x"}, "offset": None}])
    rest.delete(shared_sink.name)
    nowhere = {**shared_sink.config, "file": str(shared_sink.file.parent / "no" / "such" / "folder")}
    with pytest.raises(DevStackError, match=f"Connector {shared_sink.name} failed: .*find or create file"):
        rest.create(shared_sink.name, nowhere)
    rest.delete(shared_sink.name)
    rest.delete(shared_sink.name)  # Nothing to delete is no error.
    assert shared_sink.name not in rest.names()


def get(worker: ConnectWorker, path: str) -> Any:
    """What the worker answers now."""
    return send(("127.0.0.1", worker.ports[0]), "GET", path).body


def herder_of(worker: dict[str, str]) -> Herder:
    """The operations of ours on the same topics as a worker."""
    settings = ControlSettings.from_worker(worker)
    topics = StateTopics(settings)
    topics.open()
    return Herder(topics, settings, "127.0.0.1:1")


def test_what_a_live_worker_runs_is_shown_as_it_shows_it_and_cannot_be_changed(shared_source: Shared):
    shared_source.let_worker_run()
    name, herder = shared_source.name, herder_of(dict(shared_source.ours))

    def theirs(of: str) -> Any:
        return get(shared_source.worker, f"/connectors/{name}{of}")

    wait_until(lambda: len(theirs("/tasks")) == 1, "its task", HANDOVER_S, every_s=0.1)
    wait_until(lambda: herder.status(name) == theirs("/status"), "the same states", HANDOVER_S, every_s=0.1)
    assert herder.info(name) == theirs("") and herder.tasks(name) == theirs("/tasks")
    for change in (herder.pause, herder.stop, herder.delete, herder.resume):
        with pytest.raises(NotStoppedError, match=r"owns? the topic"):
            change(name)
    assert theirs("/status")["connector"]["state"] == "RUNNING"


@pytest.mark.budget(40)  # It starts a Kafka Connect worker of its own.
def test_a_worker_runs_what_ours_has_registered_and_leaves_what_ours_has_stopped(
    kafka: KafkaBroker, unique_name: str, make_topic: MakeTopic, tmp_path: Path
):
    topic, file = make_topic(), tmp_path / "lines.txt"
    file.write_text("a\nb\n")
    names = {f"{kind}.storage.topic": f"{unique_name}-{kind}" for kind in ("config", "offset", "status")}
    ours = {**our_worker(kafka), **names, "group.id": unique_name, "status.storage.replication.factor": "1"}
    herder = herder_of(ours)
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(file), "topic": topic}
    herder.create("started", config)
    herder.create("stopped", config, "STOPPED")
    herder.create("deleted", config)
    herder.delete("deleted")
    with ConnectWorker.start(kafka.bootstrap, unique_name, names) as worker:

        def lines() -> list[bytes | None]:
            return [message.value() for message in Topics(kafka.bootstrap).read(topic)]

        wait_until(lambda: lines() == [b"a", b"b"], "the lines", HANDOVER_S, every_s=0.2)
        assert sorted(worker.rest.names()) == ["started", "stopped"]
        assert get(worker, "/connectors/started")["config"] == {**config, "name": "started"}
        stopped = get(worker, "/connectors/stopped/status")
        assert (stopped["connector"]["state"], stopped["tasks"]) == ("STOPPED", [])


HOW_TO = ROOT / "docs" / "how-to" / "migrate-from-a-connect-cluster.md"


@pytest.fixture
def moving(worker: ConnectWorker, kafka: KafkaBroker, unique_name: str, tmp_path: Path) -> Iterator[Moving]:
    """The connectors of the how-to page on the worker, and an installation of ours with the page's configuration."""
    page = HOW_TO.read_text("utf-8")
    text = page.replace("/data/", f"{tmp_path}/").replace("lines-", f"{unique_name}-")
    made = Moving(worker, unique_name, tmp_path, text)
    create_topic(kafka.bootstrap, unique_name)
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    for config in made.configs.values():
        worker.rest.create(config["name"], config)
    properties = (
        made.block("properties worker").replace("broker:9092", kafka.bootstrap).replace("batch", f"{unique_name}-batch")
    )
    made.worker_file.write_text(f"{properties}runs.storage.topic={unique_name}-runs\n")
    wait_until(lambda: made.written() == ["one", "two"], "the worker's lines", HANDOVER_S, every_s=0.1)
    yield made
    for config in made.configs.values():
        worker.rest.delete(config["name"])


@pytest.mark.budget(30)  # Kafka Connect needs seconds to start and to stop connectors.
def test_connectors_of_the_how_to_page_move_with_their_offsets(moving: Moving):
    command = ("migrate", moving.worker.url, *moving.names, "--worker", moving.worker_file)
    wait_until(
        lambda: all(moving.worker.rest.offsets(name) for name in moving.names), "its offsets", HANDOVER_S, every_s=0.1
    )
    planned = run_command(*command, "--plan")
    assert planned.out == moving.block("text", "plan")
    assert moving.worker.rest.status(moving.names[0])["connector"]["state"] == "RUNNING"
    assert "add --yes" in run_command(*command).err

    moved = run_command(*command, "--yes")
    assert (moved.exit_code, moved.out) == (0, moving.block("text", "moved")), moved.err
    assert [moving.worker.rest.status(name)["connector"]["state"] for name in moving.names] == ["STOPPED"] * 2
    with (moving.folder / "in.txt").open("a") as lines:
        lines.write("three\n")
    assert [moving.run_ours(name).records for name in reversed(moving.names)] == [1, 1]
    assert moving.written() == ["one", "two", "three"]
    again = run_command(*command, "--plan")
    assert (again.exit_code, again.out.count("is registered here already")) == (2, 2)


def test_connector_that_cannot_be_moved_goes_on_in_the_cluster(moving: Moving, monkeypatch: pytest.MonkeyPatch):
    sink, source = moving.names
    ours = KafkaConnectors(read_worker_file(moving.worker_file))
    with httpx.Client() as client:
        cluster = ConnectRest([moving.worker.url], client)
        (judged,) = judge(cluster, ours, [sink], {})
        ours.open()
        ours.create(sink, judged.config, "STOPPED")  # Somebody else was faster.
        with pytest.raises(ConnectError, match="already exists"):
            move(cluster, ours, judged, str)
        with pytest.raises(ConnectError, match="has no connector called nope"):
            judge(cluster, ours, ["nope"], {})
        (wrong,) = judge(cluster, ours, [source], {"connector.class": "NoSuchSource"})
        assert not wrong.can_move
        moving.worker.rest.wait_for(sink, "RUNNING")
        with (moving.folder / "in.txt").open("a") as lines:
            lines.write("three\n")
        wait_until(lambda: moving.written() == ["one", "two", "three"], "the worker's lines", HANDOVER_S, every_s=0.1)

        def resume(name: str) -> None:
            raise UnavailableError(f"Kafka did not answer about {name}.")

        ours.delete(sink)
        monkeypatch.setattr(ours, "resume", resume)
        with pytest.raises(UnavailableError, match="registered here with its offsets, but it does not run yet"):
            move(cluster, ours, judged, str)
    assert ours.states(sink)["connector"]["state"] == "STOPPED"
    assert moving.worker.rest.status(sink)["connector"]["state"] == "STOPPED"


def test_commands_work_with_the_rest_api_of_a_kafka_connect_worker(moving: Moving):
    sink, _ = moving.names

    def command(*words: str | Path) -> Done:
        return run_command(*words, "--url", moving.worker.url)

    row = next(line for line in command("connectors", "list").out.splitlines() if line.startswith(sink))
    assert row.split() == [sink, "sink", "RUNNING", "1", "RUNNING", "FileStreamSink"]
    assert "FileStreamSinkConnector" in command("plugins", "list").out
    assert command("loggers", "list").exit_code == 0
    assert command("topics", "list", sink).out == f"{moving.topic}\n"
    refused = command("offsets", "set", sink, "--to", "1", "--yes")
    assert (refused.exit_code, f"connectors stop {sink}" in refused.err) == (2, True)
    assert command("connectors", "stop", sink).exit_code == 0
    moving.worker.rest.wait_for(sink, "STOPPED")
    assert command("offsets", "set", sink, "--to", "1", "--yes").out.splitlines()[-1] == f"✓ {sink}: 1 offset changed."
    assert command("connectors", "resume", sink).exit_code == 0
    wait_until(lambda: moving.written() == ["one", "two", "two"], "the line again", HANDOVER_S, every_s=0.1)
    assert f"Did you mean {sink}" in command("connectors", "get", f"{sink}s").err
