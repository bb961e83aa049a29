"""The clusters that tasks of DAGs name are found in what Airflow keeps of each DAG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.errors import UnavailableError
from airflow_connect.ui.web import dag_places
from airflow_connect.ui.web.dag_places import DagPlaces, default_place, places_of
from airflow_connect.ui.web.installations import Installations
from tests.support.kept_dags import forget_dag, keep_dag

COPY = '{"connector.class": "LocalSink", "name": "n", "topics": "t"}'
NAMED = {
    "default": (f"ConnectorOperator(task_id='a', config={COPY})", ["kafka_default"]),
    "kafka": (f"ConnectorOperator(task_id='a', config={COPY}, kafka_conn_id='one')", ["one"]),
    "worker": (f"ConnectorOperator(task_id='a', config={COPY}, worker_conn_id='two')", ["two"]),
    "both": (f"ConnectorOperator(task_id='a', config={COPY}, kafka_conn_id='one', worker_conn_id='two')", ["one"]),
    "brokers": (f"ConnectorOperator(task_id='a', config={COPY}, worker={{'bootstrap.servers': 'b:9'}})", ["b:9"]),
    "brokers with a scheme": (
        f"ConnectorOperator(task_id='a', config={COPY}, worker={{'bootstrap.servers': 'SSL://b:9'}})",
        ["SSL:__b:9"],
    ),
    "runs topic": (
        f"ConnectorOperator(task_id='a', config={COPY}, worker={{'runs.storage.topic': 'r'}})",
        ["kafka_default:r"],
    ),
    "worker file": (f"ConnectorOperator(task_id='a', config={COPY}, worker='/etc/w.properties')", ["w.properties"]),
    "template": (f"ConnectorOperator(task_id='a', config={COPY}, kafka_conn_id='{{{{ var.value.k }}}}')", []),
    "no connection": (f"ConnectorOperator(task_id='a', config={COPY}, kafka_conn_id=None)", []),
    "mapped": ("ConnectorOperator.partial(task_id='a').expand(config_file=['x.json', 'y.json'])", ["kafka_default"]),
    "mapped connections": (
        f"ConnectorOperator.partial(task_id='a', config={COPY}).expand(kafka_conn_id=['one', 'two'])",
        ["one", "two"],
    ),
    "mapped arguments": (
        "ConnectorOperator.partial(task_id='a').expand_kwargs([{'config_file': 'x', 'kafka_conn_id': 'one'}])",
        ["one"],
    ),
    "own class": (f"Own(task_id='a', config={COPY}, kafka_conn_id='one')", ["one"]),
    "other": ("EmptyOperator(task_id='a')", []),
}
SOURCE = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

class Own(ConnectorOperator):
    pass

with DAG({dag_id!r}, schedule=None):
    {task}
"""


@pytest.mark.parametrize(("task", "names"), NAMED.values(), ids=NAMED)
def test_task_names_its_cluster(load_dag: Any, task: str, names: list[str]) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = load_dag(SOURCE.format(dag_id="d", task=task))
    kept = json.loads(json.dumps(DagSerialization.to_dict(dag)))
    assert list(dict.fromkeys(place.name for place in places_of(kept))) == names


def test_dag_is_read_again_when_it_has_changed(
    airflow_home: Path, tmp_path: Path, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLACE_ONE", json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "b:1", "acks": "1"}})
    )
    places = DagPlaces()
    keep_dag(
        tmp_path,
        SOURCE.format(
            dag_id=unique_name, task=f"ConnectorOperator(task_id='a', config={COPY}, kafka_conn_id='place_one')"
        ),
    )
    found = places.read()["place_one"]
    assert (found.conn_id, found.worker_config()["bootstrap.servers"]) == ("place_one", "b:1")
    keep_dag(
        tmp_path,
        SOURCE.format(
            dag_id=unique_name, task=f"ConnectorOperator(task_id='a', config={COPY}, kafka_conn_id='place_two')"
        ),
    )
    assert {"place_one", "place_two"}.intersection(places.read()) == {"place_two"}
    shown = Installations(places)
    assert ("place_two" in shown.names(), shown.conn_id_of("place_two")) == (True, "place_two")
    assert shown.argument_of("place_two") == 'kafka_conn_id="place_two"'
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "only")
    assert (shown.names(), shown.argument_of("only")) == (["only"], 'worker_conn_id="only"')
    forget_dag(unique_name)
    assert "place_two" not in places.read()


def test_default_connection_is_shown_if_it_leads_somewhere(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_place() is None
    for brokers, is_shown in {"broker:9092": False, "kafka:9092": True}.items():
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": brokers}}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
        assert (default_place() is not None) is is_shown


def test_database_that_does_not_answer_is_named(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import text

    monkeypatch.setattr(dag_places, "newest_versions", lambda: text("SELECT * FROM no_such_table"))
    with pytest.raises(UnavailableError, match="Airflow's database did not say which connections the DAGs use"):
        DagPlaces().read()
