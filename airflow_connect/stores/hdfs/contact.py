"""First contact with a name service: NameNodes that answer are tried before those that do not.

Both clients, hdfs-native and Hadoop's own, try the NameNodes of a name service in the configured order, and move to the
next one if a connection is refused or a standby answers. A NameNode that accepts connections and never answers, or a
host that drops packets, blocks hdfs-native forever and Hadoop's client for two minutes, although the active NameNode is
the next in the list. So all are contacted separately and in parallel, and the clients get the order in which they
answered. A single NameNode is not contacted here.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from xml.etree import ElementTree

from airflow_connect.stores.hdfs.errors import UNREACHABLE, read_refusal
from airflow_connect.stores.hdfs.settings import CLIENT_PROPERTIES, HdfsSettings

if TYPE_CHECKING:
    from hdfs_native import Client

log = logging.getLogger(__name__)


class _Answer(IntEnum):
    """How a NameNode answered, in the order in which clients should try them."""

    ACTIVE = 0
    OTHER = 1
    UNREACHABLE = 2
    SILENT = 3


def conf_folder(conf_dir: str) -> str:
    """The folder of Hadoop's configuration, found the way hdfs-native finds it; "" if there is none.

    Args:
        conf_dir: the folder of the connector's configuration, or "".
    """
    home = os.environ.get("HADOOP_HOME", "")
    return conf_dir or os.environ.get("HADOOP_CONF_DIR", "") or (home and f"{home}/etc/hadoop")


def native_client(settings: HdfsSettings, properties: dict[str, str]) -> Client:
    """A client of hdfs-native; nothing is sent.

    Args:
        settings: address, login, configuration of Hadoop.
        properties: override those of Hadoop's configuration.
    """
    from hdfs_native import Client

    return Client(
        settings.url,
        {**CLIENT_PROPERTIES, **properties},
        settings.conf_dir or None,
        kerberos_principal=settings.principal or None,
        kerberos_keytab=settings.keytab or None,
    )


def fastest_name_node_first(settings: HdfsSettings) -> dict[str, str]:
    """Properties that make a client try the NameNodes that answer first.

    NameNodes have `settings.first_answer_s` to answer; waiting ends early once the active one has answered.

    Returns:
        `{"dfs.ha.namenodes.service": "nn2,nn1", ...}`; empty if there are not several.
    """
    service = urlsplit(settings.address).netloc
    name = f"dfs.ha.namenodes.{service}"
    configured = [node.strip() for node in _property(conf_folder(settings.conf_dir), name).split(",") if node.strip()]
    if len(configured) < 2:
        return {}

    def client_of(node: str) -> Client:
        return native_client(settings, {name: node, "dfs.client.failover.max.attempts": "0"})

    answers = _ask_each(configured, client_of, settings.first_answer_s)
    ordered = sorted(configured, key=lambda node: answers.get(node, _Answer.SILENT))
    if ordered != configured:
        log.info("NameNodes of %s are tried in the order %s.", service, ", ".join(ordered))
    return {name: ",".join(ordered), "dfs.client.failover.random.order": "false"}


def _ask_each(nodes: list[str], client_of: Callable[[str], Client], within_s: float) -> dict[str, _Answer]:
    """Answers that arrived in time, or before the active NameNode answered."""
    came: SimpleQueue[tuple[str, _Answer]] = SimpleQueue()

    def ask(node: str) -> None:
        came.put((node, _answer_of(node, client_of)))

    for node in nodes:
        # A request without an answer cannot be cancelled: its thread is left behind, see request_timeouts.py.
        threading.Thread(target=ask, args=(node,), name=f"hdfs-contact-{node}", daemon=True).start()
    answers: dict[str, _Answer] = {}
    deadline = time.monotonic() + within_s
    while len(answers) < len(nodes) and _Answer.ACTIVE not in answers.values():
        try:
            node, answer = came.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        answers[node] = answer
    return answers


def _answer_of(node: str, client_of: Callable[[str], Client]) -> _Answer:
    try:
        client_of(node).get_file_info("/")
    except Exception as error:  # noqa: BLE001 (whatever it is, the client meets it again and reports it)
        refusal = read_refusal(error)
        log.debug("NameNode %s answered: %s", node, refusal)
        return _Answer.UNREACHABLE if refusal.kind in UNREACHABLE else _Answer.OTHER
    return _Answer.ACTIVE


def _property(folder: str, name: str) -> str:
    """The last value of a property in `core-site.xml` or `hdfs-site.xml`; "" if it is not set."""
    value = ""
    for file in ("core-site.xml", "hdfs-site.xml") if folder else ():
        try:
            root = ElementTree.parse(Path(folder) / file).getroot()
        except (OSError, ElementTree.ParseError) as error:
            log.debug("%s of %s is not read here: %s", file, folder, error)
            continue
        for found in root.iter("property"):
            if (found.findtext("name") or "").strip() == name:
                value = found.findtext("value") or ""
    return value


__all__ = ["conf_folder", "fastest_name_node_first", "native_client"]
