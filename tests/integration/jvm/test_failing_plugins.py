"""Whatever a plugin does to its JVM becomes a typed error that names it, and nothing is left running."""

from __future__ import annotations

import os
import re
import signal

import pytest

from airflow_connect.errors import ConnectError, JavaBlockedError, JavaPluginError, JavaRetriableError, JvmGoneError
from airflow_connect.jvm import host_process
from airflow_connect.jvm.frames import encode
from tests.integration.jvm.hosting import configuration, drain, frame_of, group_members, is_running, replies, values
from tests.support.processes.proc import freeze
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

TWENTY = [f"v{number}" for number in range(20)]


def fails_after_its_records(host, kind: type[ConnectError]) -> ConnectError:
    """The frames before an error all come; then it is the same error each time."""
    found: list[str | None] = []
    with pytest.raises(kind) as failed:
        drain(host, found)
    assert found == TWENTY
    return failed.value


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (
            "ThrowsInPoll",
            "java.lang.IllegalArgumentException: plugin bug; caused by java.lang.NullPointerException: inner",
        ),
        ("ErrorInPoll", "java.lang.NoClassDefFoundError: com/example/Missing"),
    ],
)
def test_poll_that_throws_gives_the_exception_after_its_records(start_task, plugin, says):
    host = start_task(f"FailingSources${plugin}")
    error = fails_after_its_records(host, JavaPluginError)
    assert error.code == "java.plugin_failed"
    assert f"plugins.FailingSources${plugin}, task 0 failed in plugins.FailingSources${plugin}$" in error.message
    assert says in error.message
    with pytest.raises(JavaPluginError, match=re.escape(says)):
        host.call("next", wait_ms=0)
    assert host.close() == []
    assert not is_running(host.pid)


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        ("ExitsInPoll", "with exit code 3"),
        ("HaltsInPoll", "with exit code 9"),
        ("SegfaultsInPoll", "(by SIGABRT|with exit code 1)"),
        ("FillsHeap", "with exit code 3"),
    ],
)
def test_end_of_the_jvm_names_plugin_and_reason(start_task, lines, plugin, says):
    host = start_task(f"FailingSources${plugin}")
    found: list[str | None] = []
    with pytest.raises(JvmGoneError, match=f"FailingSources.{plugin}, task 0 has ended {says} during 'next'") as failed:
        drain(host, found)
    # The frames of both polls, or that of the second one, may be inside the JVM when it ends; the run fails, so nothing
    # is lost.
    assert found in ([], TWENTY[:10], TWENTY)
    assert failed.value.code == "java.jvm_gone"
    assert group_members(host.pid) == []
    assert not host._process.folder.exists()
    if plugin == "ExitsInPoll":
        assert "the plugin says goodbye" in failed.value.message
    if plugin == "SegfaultsInPoll":
        assert "It crashed in V  [libjvm.so" in failed.value.message
    if plugin == "FillsHeap":
        assert "airflow.java.heap.mb" in failed.value.suggestion
    with pytest.raises(JvmGoneError, match=says):
        host.call("next", wait_ms=0)
    assert host.close() == []


def test_poll_that_hangs_is_told_with_its_stack_and_ends_when_interrupted(start_task):
    host = start_task("FailingSources$HangsInPoll")
    frames = [host.call("next", wait_ms=5000)]
    assert values(frames) == TWENTY
    blocked = host.call("next", wait_ms=1500).result
    assert blocked["state"] == "idle"
    assert blocked["empty_polls"] == 0
    assert blocked["blocked_ms"] >= 1000
    assert "plugins.FailingSources$HangsInPoll$HangTask.misbehave" in blocked["stack"]


def test_plugin_that_hangs_in_poll_and_stop_is_ended(start_task):
    host = start_task("FailingSources$HangsForEver")
    assert values([host.call("next", wait_ms=5000)]) == TWENTY
    warnings = host.close(call_timeout_s=1)
    assert "plugins.FailingSources$HangsForEver$ForEverTask: stop did not return within 1.0 s" in warnings
    assert any("poll did not return, not even when it was interrupted" in warning for warning in warnings)
    assert not is_running(host.pid)


def test_put_that_hangs_is_killed_with_its_stack(start_task):
    host = start_task("Sinks$HangsInPut")
    frame = encode(frame_of([(None, b"v")]))
    with pytest.raises(JavaBlockedError) as failed:
        host.call("put", frame.body, timeout_s=0.5, **frame.members)
    assert failed.value.code == "java.blocked"
    assert "plugins.Sinks$HangsInPut, task 0 did not return from 'put' within 0.5 s" in failed.value.message
    assert "plugins.Sinks$HangsInPut$HangTask.waitForEver" in failed.value.message
    assert group_members(host.pid) == []
    assert host.close() == []


@pytest.mark.parametrize(
    ("plugin", "warnings"),
    [
        (
            "FailingSources$ThrowsInStop",
            ["plugins.FailingSources$ThrowsInStop$StopTask: stop has failed: java.lang.IllegalStateException: bug"],
        ),
        (
            "Sinks$ThrowsInStop",
            [
                "plugins.Sinks$ThrowsInStop$StopTask: close has failed: java.lang.IllegalStateException: close bug",
                "plugins.Sinks$ThrowsInStop$StopTask: stop has failed: java.lang.IllegalStateException: stop bug",
            ],
        ),
        ("FailingSources$LeaksThread", []),
    ],
)
def test_close_reports_what_failed_and_ends_the_jvm(start_task, plugin, warnings):
    host = start_task(plugin)
    assert host.close() == warnings
    assert host._exit_code == 0
    assert not is_running(host.pid)


def test_children_of_a_plugin_end_with_its_jvm(start_task, lines):
    host = start_task("FailingSources$LeavesChild")
    wait_until(lambda: any(line.startswith("child ") for line in lines), "the plugin tells its child")
    child = int(next(line for line in lines if line.startswith("child ")).split()[1])
    assert is_running(child)
    host.close()
    wait_until(lambda: not is_running(child), "the child has ended")


def test_flood_of_output_does_not_stop_the_jvm(start_task, lines):
    host = start_task("FailingSources$Floods")
    assert values(replies(host)) == TWENTY
    host.close()
    assert lines.count("x" * 100) == 40_000


def test_poll_that_asks_to_be_repeated_is_not_idle(start_task, lines):
    host = start_task("FailingSources$RetriableInPoll")
    assert values(replies(host)) == TWENTY


@pytest.mark.parametrize(
    ("plugin", "op", "says"),
    [
        (
            "FailingSources$ConnectorThrowsInStart",
            "plan",
            "ConnectException: no such database; caused by java.lang.Ill",
        ),
        ("FailingSources$ConnectorRaisesError", "plan", "ConnectException: raised at once"),
        ("FailingSources$ReturnsNothing", "plan", "ConnectException: taskConfigs() must not return null."),
        ("FailingSources$ThrowsInStart", "source", "ConnectException: no start"),
        ("Sinks$ThrowsInStart", "sink", "ConnectException: no start"),
    ],
)
def test_start_that_throws_is_a_typed_error(start_task, plugin, op, says):
    with pytest.raises(JavaPluginError, match=re.escape(says)) as failed:
        start_task(plugin)
    assert f"plugins.{plugin}" in failed.value.message


def test_secrets_of_the_configuration_are_hidden_in_lines_and_errors(start_task, lines):
    keys = {"database.password": "hunter22", "url": "jdbc:x://me:geheim77@db/y", "token.file": "/a/b"}
    with pytest.raises(JavaPluginError, match=r"refused: jdbc:x://me:\[hidden\]@db/y"):
        start_task("FailingSources$TellsSecrets", **keys)
    wait_until(lambda: any(line.startswith("config ") for line in lines), "the plugin prints its configuration")
    assert "hunter22" not in "".join(lines)
    assert "geheim77" not in "".join(lines)
    assert "database.password=[hidden]" in "".join(lines)


def test_connector_that_ends_its_jvm_is_named(start_host):
    host = start_host()
    with pytest.raises(
        JvmGoneError, match=r"FailingSources.ConnectorExitsInStart has ended with exit code 7 during 'plan'"
    ):
        host.call("plan", config=configuration("FailingSources$ConnectorExitsInStart"), max_tasks=1, offsets=[])


def test_connector_reports_errors_and_requests_of_its_threads(start_host):
    host = start_host()
    config = configuration("FailingSources$ConnectorRaisesError", late="yes")
    host.call("plan", config=config, max_tasks=1, offsets=[])
    seen = []
    wait_until(lambda: seen.append(host.call("watch").result) or seen[-1]["raised"], "the error is reported")
    assert seen[-1]["raised"] == "org.apache.kafka.connect.errors.ConnectException: the monitor failed"
    assert [each["reconfigure"] for each in seen].count(True) == 1
    assert host.call("watch").result["reconfigure"] is False


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        ("Sinks$ThrowsInPut", "org.apache.kafka.connect.errors.ConnectException: no put"),
        ("Sinks$ErrorInPut", "java.lang.NoClassDefFoundError: com/example/Missing"),
    ],
)
def test_put_that_throws_is_a_typed_error(start_task, plugin, says):
    host = start_task(plugin)
    frame = encode(frame_of([(None, b"v")]))
    with pytest.raises(JavaPluginError, match=re.escape(says)) as failed:
        host.call("put", frame.body, **frame.members)
    assert not isinstance(failed.value, JavaRetriableError)


def test_jvm_that_the_system_kills_is_told_with_its_signal(start_task):
    host = start_task("Sinks$Discards")
    os.kill(host.pid, signal.SIGKILL)
    with pytest.raises(JvmGoneError, match=r"Sinks.Discards, task 0 has ended by SIGKILL during 'put'"):
        host.call("put", rows=0)


def test_jvm_that_does_not_answer_at_all_is_ended(start_task, monkeypatch):
    monkeypatch.setattr(host_process, "_DUMP_TIMEOUT_S", 0.2)
    host = start_task("Sinks$Discards")
    freeze(host.pid)
    with pytest.raises(JavaBlockedError, match=r"within 0\.2 s, and its JVM was ended\. Its JVM did not answer either"):
        host.call("put", rows=0, timeout_s=0.2)
    assert not is_running(host.pid)


def test_put_that_ends_the_jvm_is_named(start_task):
    host = start_task("Sinks$ExitsInPut")
    frame = encode(frame_of([(None, b"v")]))
    with pytest.raises(JvmGoneError, match=r"Sinks.ExitsInPut, task 0 has ended with exit code 5 during 'put'"):
        host.call("put", frame.body, **frame.members)
