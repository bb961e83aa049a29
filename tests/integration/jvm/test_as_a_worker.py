"""A worker of Kafka Connect 4.3.1 with the same `plugin.path` answers the same about its plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_connect.control.herder.plugins import installed, keys_of
from airflow_connect.control.herder.validation import validated
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.jvm.discovery.registry import registered, use_plugin_path
from tests.devstack.connect_worker import ConnectWorker
from tests.support.java_plugins import forget_java_plugins, ledger_folder, plugin_folder

LOCKS = (
    "camel-kafka-0.11.0",
    "debezium-postgres-3.6.3",
    "kafka-connect-transform-common-0.1.0.14",
    "mongo-kafka-2.0.1",
)
LEDGER, MONGO = "acme.LedgerSinkConnector", "com.mongodb.kafka.connect.MongoSinkConnector"
OF_EVERY_CONNECTOR = {"topics", "topics.regex", "errors.tolerance", "errors.log.enable"}
"""Keys that some of these classes define again."""
DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"


@pytest.mark.soak
@pytest.mark.budget(90)  # The worker scans every class of every jar.
def test_lists_keys_and_validation_are_those_of_a_worker(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_java_plugins(monkeypatch)
    plugin_folder(tmp_path / "path", *LOCKS)
    ledger_folder(tmp_path / "path")
    ours: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap, "plugin.path": str(tmp_path / "path")}
    ours |= dict.fromkeys(("key.converter", "value.converter"), "StringConverter")
    use_plugin_path(ours)
    properties = {"plugin.path": str(tmp_path / "path"), "plugin.discovery": "only_scan"}
    with ConnectWorker.start_standalone(kafka.bootstrap, properties) as worker:
        listed = worker.rest.plugins()
        theirs = [entry for entry in listed if not entry["class"].startswith("org.apache.kafka.")]
        mine = installed(connectors_only=False)
        java = {entry["class"] for entry in theirs}
        assert {(e["class"], e["type"], e.get("version")) for e in theirs} == {
            (e["class"], e["type"], e.get("version")) for e in mine if e["class"] in java
        }
        assert len(theirs) > 40
        for entry in theirs:
            theirs_keys, own = worker.rest.plugin_keys(entry["class"]), registered(entry["class"]).key_infos()
            found = keys_of(entry["class"])
            assert found[: len(own)] == theirs_keys[: len(own)] == own
            names, more = {key["name"] for key in found}, theirs_keys[len(own) :]
            assert {key["name"] for key in more} <= names
            assert bool(more) == (entry["type"] in ("sink", "source"))
        for name, own in (
            (LEDGER, {"ledger.url": "refused:x", "ledger.pages": "0"}),
            (LEDGER, {"ledger.url": "x", "ledger.seal": "wax"}),
            (MONGO, {"connection.uri": "nonsense", "max.batch.size": "many"}),
            (DEBEZIUM, {"database.hostname": "127.0.0.1", "database.port": "1", "topic.prefix": "p"}),
        ):
            config = {"name": "c", "connector.class": name, "topics": "t", **own}
            answer = worker.rest.validate(name, config)
            own_keys = {key["name"] for key in registered(name).key_infos()}
            found = validated(name, config, ours, asks_java=True)
            assert _of(found, own_keys - OF_EVERY_CONNECTOR) == _of(answer, own_keys - OF_EVERY_CONNECTOR)


def _of(infos: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    """What an answer says about some keys."""
    configs = (entry for entry in infos["configs"] if entry["value"]["name"] in keys)
    return {entry["value"]["name"]: entry for entry in configs}
