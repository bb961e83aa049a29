"""Connectors inside a program: the example of docs/embedded.md, and what it does not show."""

from __future__ import annotations

import pickle
import threading

import pytest

from airflow_connect import Connect
from airflow_connect.embedded.connect import ConnectorRunError
from airflow_connect.errors import ConfigError, UnavailableError
from tests.support.servers.rest import STRINGS

pytestmark = pytest.mark.integration


@pytest.fixture
def app(kafka, unique_name):
    worker = {"bootstrap.servers": kafka.bootstrap, "key.converter": STRINGS, "value.converter": STRINGS}
    return lambda **more: Connect(
        unique_name, {**worker, **{k.replace("_", "."): v for k, v in more.items()}}, in_process=True
    )


@pytest.fixture
def lines(tmp_path, make_topic):
    """A source of a file: its configuration; `.write(...)` lets the file grow."""

    class Lines(dict):
        def write(self, *more):
            with open(self["file"], "a", encoding="utf-8") as out:
                out.writelines(f"{line}\n" for line in more)

    found = Lines({"connector.class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": make_topic()})
    found.write("one", "two")
    return found


def values(connect, topic):
    return [(record.value or b"").decode() for record in connect.read(topic)]


def test_a_connector_fills_a_topic_until_it_is_paused_and_another_process_continues(app, lines):
    with app() as connect:
        assert connect.add("lines", lines) == "created"
        connect.start()
        connect.wait_until_caught_up("lines")
        assert values(connect, lines["topic"]) == ["one", "two"]

        connect.pause("lines")
        lines.write("three")
        with pytest.raises(UnavailableError, match=r"has not caught up within 0.5 s"):
            connect.wait_until_caught_up("lines", timeout_s=0.5)
        assert values(connect, lines["topic"]) == ["one", "two"]
        assert connect.status("lines")["connector"]["state"] == "PAUSED"
        connect.resume("lines")
        connect.wait_until_caught_up("lines")
        assert values(connect, lines["topic"]) == ["one", "two", "three"]
        with pytest.raises(ConfigError, match="started already"):
            connect.start()

    lines.write("four")
    with app() as later:
        assert (later.names, later.add("lines", lines)) == (["lines"], "unchanged")
        assert later.wait_until_caught_up("lines").records == 1
        assert values(later, lines["topic"]) == ["one", "two", "three", "four"]
        assert (later.remove("lines"), later.remove("lines")) == (True, False)


def test_two_processes_of_an_application_copy_each_line_once(app, lines):
    """Two objects stand for two processes: they share nothing but Kafka."""
    wanted, codes = ["one", "two"], []

    def run(connect):
        for _ in range(2):
            error = connect.run("lines", check=False).error
            codes.append(error and error["code"])

    with app() as one, app() as other:
        one.add("lines", lines)
        threads = [threading.Thread(target=run, args=(connect,)) for connect in (one, other)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            wanted.append(str(len(wanted)))
            lines.write(wanted[-1])
            threads[0].join(0.1)
            threads[1].join(0.1)
        one.run("lines")
        assert values(one, lines["topic"]) == wanted
    assert len(codes) == 4 and set(codes) <= {None, "run.fenced"}


def test_one_bounded_run_returns_its_report(app, lines, tmp_path):
    with app() as connect:
        connect.add("lines", lines)
        assert connect.run("lines").records == 2
        assert connect.run("lines").status == "empty"
        sink = {"connector.class": "FileStreamSink", "topics": lines["topic"], "file": str(tmp_path / "out.txt")}
        connect.add("copy", sink)
        assert connect.run("copy").records == 2
        assert (tmp_path / "out.txt").read_text() == "one\ntwo\n"
        assert connect.offsets("copy")[0]["offset"] == {"kafka_offset": 3}  # The marker of the transaction is at 2.


def test_limited_runs_are_repeated_until_nothing_is_left(app, lines):
    lines.write("three")
    with app() as connect:
        connect.add("lines", {**lines, "run.max.records": 2})
        connect.wait_until_caught_up("lines")
        assert len(connect.read(lines["topic"])) == 3


def test_a_run_that_fails_raises_and_is_recorded_and_starts_again_with_a_new_configuration(app, lines, tmp_path):
    sink = {"connector.class": "LocalSinkConnector", "topics": lines["topic"], "format.class": "JsonFormat"}
    (tmp_path / "file").touch()
    wrong = {**sink, "store.url": f"file://{tmp_path}/file/x", "flush.size": "1"}
    with app() as connect:
        connect.add("lines", lines)
        connect.run("lines")
        connect.add("files", wrong)
        with pytest.raises(ConnectorRunError, match="The run of connector files failed") as failed:
            connect.run("files")
        assert failed.value.report.status == "failed"
        copied = pickle.loads(pickle.dumps(failed.value))
        assert (str(copied), copied.report) == (str(failed.value), failed.value.report)
        assert connect.run("files", check=False).error == failed.value.report.error
        assert "FAILED" in str(connect.status("files"))
        with pytest.raises(ConnectorRunError):
            connect.wait_until_caught_up("files")
        connect.start()
        connect.add("files", {**wrong, "store.url": f"file://{tmp_path}/out"})
        connect.wait_until_caught_up("files")
        assert "FAILED" not in str(connect.status("files"))
        assert len(list((tmp_path / "out").rglob("*.json"))) == 2


def test_wrong_use_is_refused_with_a_reason(app, kafka, lines):
    with pytest.raises(ConfigError, match="not open"):
        app().run("x")
    with pytest.raises(ConfigError, match="application id"):
        Connect("my app", {})
    with app() as connect:
        with pytest.raises(ConfigError, match="has no connector called lines"):
            connect.run("lines")
        with pytest.raises(ConfigError, match="topic"):
            connect.add("lines", {"connector.class": "FileStreamSource", "file": "x"})
