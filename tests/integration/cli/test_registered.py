"""`connectors`, `tasks`, `topics`, `plugins`, `loggers`: the same over REST and straight over Kafka."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.conftest import SECRET
from tests.support.command_line import run_command

pytestmark = pytest.mark.integration

SINK = {"connector_class": "FileStreamSink", "topics": "lines", "file": "/tmp/out.txt"}


def test_a_connector_is_created_changed_stopped_and_deleted(command, connector_file, unique_name):
    name, file = unique_name, connector_file(unique_name, **SINK)
    created = command("connectors", "create", file, "--state", "PAUSED")
    assert (created.exit_code, created.out) == (0, f"✓ {name}: created\n")
    assert command("connectors", "list").out.count(name) == 1
    row = next(line for line in command("connectors", "list").out.splitlines() if line.startswith(name))
    assert row.split() == [name, "sink", "PAUSED", "none", "FileStreamSink"]

    again = command("connectors", "create", file)
    assert again.exit_code != 0
    assert "already exists" in again.err
    assert command("connectors", "apply", file).out == f"✓ {name}: unchanged\n"
    changed = connector_file(name, **{**SINK, "file": "/tmp/other.txt", "tasks_max": 2})
    dry = command("connectors", "apply", "--dry-run", changed)
    assert dry.out.splitlines() == [
        f"✓ {name}: would be changed",
        "    ~ file: /tmp/out.txt → /tmp/other.txt",
        "    + tasks.max=2",
    ]
    assert command("connectors", "get", name, "--json").result["config"]["file"] == "/tmp/out.txt"
    assert command("connectors", "apply", changed).out.startswith(f"✓ {name}: updated\n")
    assert json.loads(command("connectors", "get", name).out)["file"] == "/tmp/other.txt"

    assert command("connectors", "resume", name).exit_code == 0
    tasks = command("tasks", "list", name, "--json").result["tasks"]
    assert [(task["task"], task["state"]) for task in tasks] == [(0, "RUNNING"), (1, "RUNNING")]
    assert command("tasks", "restart", name, "1").exit_code == 0
    assert command("connectors", "restart", name).exit_code == 0
    assert command("topics", "list", name).out == "No topics yet.\n"
    assert command("topics", "reset", name).exit_code == 0
    assert command("connectors", "stop", name).exit_code == 0
    states = command("connectors", "status", name, "--json").result["connectors"][name]
    assert (states["connector"]["state"], states["tasks"]) == ("STOPPED", [])
    assert command("connectors", "status", name).out.splitlines() == [
        f"{name}  sink",
        f"  PART       STATE    {'WORKER':{len(states['connector']['worker_id'])}}".rstrip(),
        f"  connector  STOPPED  {states['connector']['worker_id']}",
    ]

    asked = command("connectors", "delete", name)
    assert (asked.exit_code, "add --yes" in asked.err) == (2, True)
    assert command("connectors", "delete", "--yes", name).out == f"✓ {name}: deleted\n"
    gone = command("connectors", "get", name)
    assert (gone.exit_code, f"has no connector called {name}" in gone.err) == (2, True)


def test_an_unknown_name_lists_the_nearest(command, connector_file, unique_name):
    near = f"orders-to-s3-{unique_name}"
    command("connectors", "create", connector_file(near, **SINK), "--state", "STOPPED")
    for words in (["connectors", "pause"], ["connectors", "get"], ["tasks", "list"], ["offsets", "get"]):
        missed = command(*words, f"order-to-s3-{unique_name}")
        assert missed.exit_code == 2
        assert f"Did you mean {near}?" in missed.err, missed.err
    assert command("topics", "list", "no-such-name-at-all").exit_code == 2
    command("connectors", "delete", "--yes", near)


def test_secrets_are_hidden_and_a_hidden_one_is_never_written(command, connector_file, unique_name, tmp_path):
    secret = {"value_converter": "StringConverter", "producer_override_sasl_password": SECRET}
    config = {**SINK, "connector_class": "FileStreamSource", "topic": "lines", **secret}
    file = connector_file(unique_name, **{key: value for key, value in config.items() if key != "topics"})
    assert command("connectors", "create", file, "--state", "STOPPED").exit_code == 0
    shown = command("connectors", "get", unique_name)
    assert "[hidden]" in shown.out and SECRET not in shown.out
    everything = command("connectors", "list", "--json")
    assert SECRET not in everything.out + everything.err
    assert SECRET in command("connectors", "get", "--with-secrets", unique_name).out

    saved = tmp_path / "saved.json"
    saved.write_text(shown.out)
    refused = command("connectors", "apply", saved)
    assert refused.exit_code == 2
    assert "stands for a secret that was not shown" in refused.err
    command("connectors", "delete", "--yes", unique_name)


def test_a_wrong_configuration_is_refused_and_the_next_file_still_applied(command, connector_file, unique_name):
    bad = connector_file(f"{unique_name}-bad", connector_class="FileStreamSink", file="x")
    good = connector_file(f"{unique_name}-good", **SINK)
    done = command("connectors", "apply", "--json", bad, good)
    assert done.exit_code == 2
    assert [entry.get("done") for entry in done.result["connectors"]] == [None, "created"]
    assert "topics" in done.envelope["error"]["message"]
    command("connectors", "delete", "--yes", f"{unique_name}-good")


def test_plugins_and_their_keys(command):
    listed = command("plugins", "list")
    assert any(line.split()[0] == "sink" and "S3SinkConnector" in line for line in listed.out.splitlines())
    assert "converter" not in {entry["type"] for entry in command("plugins", "list", "--json").result["plugins"]}
    assert "converter" in {entry["type"] for entry in command("plugins", "list", "--all", "--json").result["plugins"]}
    keys = command("plugins", "keys", "S3SinkConnector")
    assert any(line.startswith("s3.bucket.name ") and "required" in line for line in keys.out.splitlines())
    assert command("plugins", "keys", "S3Sunk").exit_code == 2


def test_log_levels_are_those_of_a_worker(over_rest, over_kafka):
    logger = "airflow_connect.of.a.test"
    assert over_rest("loggers", "set", logger, "debug").out.startswith(f"✓ {logger}: DEBUG in ")
    assert over_rest("loggers", "list", "--json").result["loggers"][logger]["level"] == "DEBUG"
    assert over_rest("loggers", "set", "--cluster", logger, "INFO").out == f"✓ {logger}: INFO in every worker\n"
    assert over_kafka("loggers", "set", "--cluster", logger, "INFO").exit_code == 0
    refused = over_kafka("loggers", "list")
    assert (refused.exit_code, "belong to a worker" in refused.err) == (2, True)


def test_reading_an_installation_that_was_never_used_creates_no_topic(kafka, unique_name, tmp_path):
    from airflow_connect.kafka.admin.new_topics import partition_count
    from airflow_connect.kafka.clients.short_lived import admin_client

    file = tmp_path / "worker.properties"
    file.write_text(f"bootstrap.servers={kafka.bootstrap}\nconfig.storage.topic={unique_name}\n")
    assert run_command("connectors", "list", "--worker", file).out == "No connectors.\n"
    assert run_command("connectors", "get", "x", "--worker", file).exit_code == 2
    assert partition_count(admin_client({"bootstrap.servers": kafka.bootstrap}), unique_name) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--url", "http://127.0.0.1:9"], "No worker answers at http://127.0.0.1:9"),
        (["--url", "ftp://x"], "is not a URL"),
        (["--url", "http://a:b@x"], "The URL holds a login"),
        (["--url", "http://x", "--worker", "w.properties"], "Both --url and --worker"),
        (["--login-file", "/nowhere/x"], "cannot be read"),
        (["--ca", "/nowhere/x", "--url", "https://127.0.0.1:9"], "--ca /nowhere/x cannot be used"),
    ],
)
def test_a_place_that_cannot_be_used_is_named(words, says):
    refused = run_command("connectors", "list", *words)
    assert refused.exit_code in (1, 2)
    assert says in refused.err


def test_a_login_is_read_from_a_file_and_never_printed(installation, tmp_path):
    from tests.support.servers.rest import RestServer

    login = tmp_path / "login"
    with RestServer(installation, {"ann": SECRET}) as guarded:
        url = "http://{}:{}".format(*guarded.address)
        login.write_text("ann:wrong-password\n")
        refused = run_command("connectors", "list", "--url", url, "--login-file", login)
        assert (refused.exit_code, "wrong-password" in refused.err) == (1, False)
        login.write_text(f"ann:{SECRET}\n")
        assert run_command("connectors", "list", "--url", url, "--login-file", login).exit_code == 0
