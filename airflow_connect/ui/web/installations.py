"""Which installations of Kafka Connect an Airflow shows.

Those of the connections of type `connect_worker` that its settings name:

[airflow_connect]
worker_conn_ids = connect_production, connect_test

Without this setting the pages show the clusters that tasks of DAGs name (dag_places.py).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from airflow_connect.airflow.config_provider import PROVIDER_NAME, AirflowConfigProvider
from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.airflow.connections.official import get_connection
from airflow_connect.airflow.connections.worker import settings_of
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.refusals import NOT_FOUND, RefusedError
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.shared_reads import SharedReads
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.registry import PLUGIN_PATH
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values
from airflow_connect.ui.overview.watching import Remembered
from airflow_connect.ui.web.dag_places import DagPlace, DagPlaces
from airflow_connect.ui.web.known_classes import PROVIDERS, unknown_classes

log = logging.getLogger(__name__)

SECTION = "airflow_connect"
WORKER_CONN_IDS = "worker_conn_ids"
READ_AGAIN_AFTER_S = 30.0
"""How long a connection is used as it was read."""
PLACES_FRESH_S = 30.0
PLACES_WAIT_S = 5.0
"""How long a request waits for the first look at the DAGs; later ones use what is known."""
_without_plugin_path: set[str] = set()


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation of Kafka Connect. Threads may share it.

    Attributes:
        conn_id: its name: the connection that holds its configuration, or of a `DagPlace`.
        worker: the worker configuration, references unresolved.
        settings: the same, checked.
        topics: its state; open.
        herder: its operations.
    """

    conn_id: str
    worker: dict[str, Any] = field(repr=False)
    settings: ControlSettings
    topics: StateTopics
    herder: Herder


@dataclass(slots=True)
class _Opened:
    installation: Installation
    read_at_s: float


class Installations:
    """The installations of this process. Their topics stay open, so that a request reads only what is new in them."""

    def __init__(self, dag_places: DagPlaces | None = None) -> None:
        """`dag_places`: what is shown if the setting names nothing; None: nothing."""
        self._places = Remembered(dag_places.read, Redactor([])) if dag_places else None
        self._opened: dict[str, _Opened] = {}
        self._openings: dict[str, SharedReads] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Names of the installations, in the order of the setting. May ask Airflow's database."""
        return _named() or list(self._of_dags())

    def named(self) -> bool:
        """Whether the setting says what is shown."""
        return bool(_named())

    def refuse_unknown(self, name: str) -> None:
        """Refuse a name that no installation has.

        Raises:
            RefusedError: with status 404; or 503, because Airflow's database has not said yet what there is.
        """
        if name in self.names():
            return
        if not self.named() and self._places and self._places.look(PLACES_FRESH_S, 0).value is None:
            raise RefusedError(
                self.problem() or "Airflow's database has not yet said which connections its DAGs use. Try again.", 503
            )
        raise RefusedError(
            f"This Airflow shows no installation {name!r}. It shows those that [{SECTION}] {WORKER_CONN_IDS} names;"
            " without that setting, those that tasks of DAGs use.",
            NOT_FOUND,
        )

    def _of_dags(self) -> dict[str, DagPlace]:
        return (self._places.look(PLACES_FRESH_S, PLACES_WAIT_S).value or {}) if self._places else {}

    def problem(self) -> str:
        """Why DAGs could not be asked, or ""."""
        return self._places.look(PLACES_FRESH_S, PLACES_WAIT_S).problem if self._places and not _named() else ""

    def conn_id_of(self, name: str) -> str:
        """The connection whose editors may change the connectors of an installation."""
        place = None if _named() else self._of_dags().get(name)
        return place.conn_id if place else name

    def argument_of(self, name: str) -> str:
        """The argument of an operator that reaches the installation, as Python text."""
        place = None if _named() else self._of_dags().get(name)
        return f'kafka_conn_id="{place.kafka_conn_id}"' if place and place.kafka_conn_id else f'worker_conn_id="{name}"'

    def default_name(self) -> str:
        """The first of them.

        Raises:
            RefusedError: with status 404; there is none.
        """
        names = self.names()
        if not names:
            raise RefusedError(
                "This Airflow shows no installation of Kafka Connect. Create a connection of type connect_worker, and"
                f" name it in Airflow's configuration: [{SECTION}] {WORKER_CONN_IDS}.",
                NOT_FOUND,
            )
        return names[0]

    def get(self, conn_id: str) -> Installation:
        """An installation, connected to Kafka. Takes a second when it is used for the first time.

        Raises:
            RefusedError: see `refuse_unknown`.
            ConfigError: there is no such connection, or its worker configuration is wrong.
            UnavailableError, AccessError: Airflow or Kafka.
        """
        self.refuse_unknown(conn_id)
        opened = self._opened.get(conn_id)
        if opened is None or time.monotonic() - opened.read_at_s >= READ_AGAIN_AFTER_S:
            with self._lock:
                opening = self._openings.setdefault(conn_id, SharedReads(lambda: self._look_at(conn_id)))
            opening.read()  # All that wait for a broker that does not answer fail together.
        return self._opened[conn_id].installation

    def _look_at(self, conn_id: str) -> None:
        """Read the connection, and open the installation if it is new or has changed."""
        place = None if _named() else self._of_dags().get(conn_id)
        worker = _worker_of(place) if place else settings_of(get_connection(conn_id))
        now_s = time.monotonic()
        opened = self._opened.get(conn_id)
        if opened is None or opened.installation.worker != worker:
            self._opened[conn_id] = _Opened(_open(conn_id, worker), now_s)
        else:
            opened.read_at_s = now_s


def _worker_of(place: DagPlace) -> dict[str, Any]:
    """The worker configuration of a task of a DAG.

    Raises:
        ConfigError: it names a config provider that this process must not import because of a DAG; or as
            `DagPlace.worker_config`.
    """
    worker = place.worker_config()
    trusted = settings_of(get_connection(place.worker_conn_id)) if place.worker_conn_id else {}
    found = [key for key in unknown_classes(worker, PROVIDERS) if worker[key] != trusted.get(key)]
    if found:
        raise ConfigError(
            f"The worker of a task of a DAG names a class under {', '.join(found)} that is neither part of this package"
            " nor an entry point, and the API server imports no other class because a DAG names it.",
            code="airflow.unknown_class",
            suggestion="Move the provider to the connection of type connect_worker that the task names"
            " (worker_conn_id), or install it as a package with an entry point.",
        )
    if worker.get(PLUGIN_PATH) != trusted.get(PLUGIN_PATH):
        # Who writes a DAG decides about the machines that run its tasks only, and Java classes are code.
        worker.pop(PLUGIN_PATH)
        if place.name not in _without_plugin_path:
            _without_plugin_path.add(place.name)
            log.warning(
                "%s: plugin.path is not used by the pages, because the worker configuration of a task of a DAG names"
                " it. Set it in the connection of type connect_worker that the task names (worker_conn_id).",
                place.name,
            )
    return worker


def _named() -> list[str]:
    from airflow.configuration import conf

    found = conf.getlist(SECTION, WORKER_CONN_IDS, fallback=[]) or []
    return list(dict.fromkeys(name.strip() for name in found if name.strip()))


def _open(conn_id: str, worker: dict[str, Any]) -> Installation:
    mask_in_airflow(secret_values(worker))
    settings = ControlSettings.from_worker(worker, providers={PROVIDER_NAME: AirflowConfigProvider})
    mask_in_airflow(settings.references.shapes())
    with settings.references.hiding_errors():
        topics = StateTopics(settings)
        topics.find()  # Opening the pages creates no topic.
    return Installation(conn_id, worker, settings, topics, Herder(topics, settings, worker_id()))


def worker_id() -> str:
    """host:port of this Airflow: who has written a state."""
    import socket

    from airflow.configuration import conf

    named = urlsplit(conf.get("api", "base_url", fallback="") or "").netloc
    return named or f"{socket.gethostname()}:{conf.get('api', 'port', fallback='8080')}"
