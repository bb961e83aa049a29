"""Checks of what connectors write to or read from: a bucket with its rules and its clock, a directory, a database.

Each result is: what was tried, what was found, what to do, and whether it is in order.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.counting import counted

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec
    from airflow_connect.stores.s3.http.transport import S3Transport

MOST_SKEW_S = 60.0
"""S3 refuses requests that are 15 minutes off; directories by wall clock suffer much earlier."""
FEWEST_DAYS = 3
"""A run that failed after its manifest needs its uploads until somebody has corrected the cause."""
_DAYS = re.compile(rb"<AbortIncompleteMultipartUpload>.*?<DaysAfterInitiation>(\d+)</DaysAfterInitiation>", re.DOTALL)
_NO_RULE = (
    "No rule aborts unfinished uploads. Runs sweep those of their predecessors; those of a deleted connector stay, and"
    " cost money."
)
_SOON = "A rule aborts unfinished uploads after {}. A run that fails while it publishes needs them until the next one."
_JDBC = "jdbc:"
Result = tuple[str, str, str, bool]


def check_bucket_of(spec: RunSpec) -> Iterator[Result]:
    """Try what a run does with its bucket; nothing becomes visible. Nothing for connectors without one.

    Raises:
        ConnectError: the bucket cannot be used; the message says why.
    """
    from airflow_connect.connectors.files.s3.connector import S3SinkConnector
    from airflow_connect.runtime.driver.sink.of_spec import sink_of

    configuration = sink_of(spec)
    if configuration is None or not issubclass(configuration.connector_class, S3SinkConnector):
        return
    from airflow_connect.connectors.files.shared.writing.opening import open_names
    from airflow_connect.stores.s3.http.transport import S3Transport
    from airflow_connect.stores.s3.preflight import check_bucket
    from airflow_connect.stores.s3.requests import S3Requests

    config = dict(configuration.resolved.connector.raw)
    with configuration.references.hiding_errors(), configuration.sink as sink:
        storage, store = sink.call("storage", lambda connector: connector.storage(config))
        transport = S3Transport(store.settings)
        try:
            name = spec.connector.get("name")
            check_bucket(S3Requests(transport), open_names(storage).prefix)
            yield f"{name}: bucket", f"{store.name} can be written; an upload was started and aborted.", "", True
            yield from _lifecycle(transport, f"{name}: lifecycle rule")
            yield from _clock(transport, f"{name}: clock")
        finally:
            transport.close()


def check_directory_of(spec: RunSpec) -> Iterator[Result]:
    """Try what a run does with its directory. Nothing for connectors without one, and for those with a bucket.

    Raises:
        ConnectError: the directory cannot be used; the message says why.
    """
    from airflow_connect.connectors.files.s3.connector import S3SinkConnector
    from airflow_connect.connectors.files.shared.connector import StorageSinkConnector
    from airflow_connect.runtime.driver.sink.of_spec import sink_of

    configuration = sink_of(spec)
    kind = None if configuration is None else configuration.connector_class
    if configuration is None or kind is None or not issubclass(kind, StorageSinkConnector):
        return
    if issubclass(kind, S3SinkConnector):
        return
    from airflow_connect.connectors.files.shared.writing.opening import open_names
    from airflow_connect.stores.local.store import LocalStore

    config = dict(configuration.resolved.connector.raw)
    with configuration.references.hiding_errors(), configuration.sink as sink:
        storage, store = sink.call("storage", lambda connector: connector.storage(config))
        did = f"{spec.connector.get('name')}: directory"
        if isinstance(store, LocalStore) and not os.path.isdir(store.root):
            yield did, f"{store.root} does not exist on this machine. The first run creates it where it runs.", "", True
            return
        publisher = store.publisher(probe_prefix=open_names(storage).prefix, overwrite=False)
        try:
            publisher.preflight()
        finally:
            publisher.close()
        yield did, f"{store.name} can be written; a file was created, renamed and deleted.", "", True


def check_database_of(spec: RunSpec) -> Iterator[Result]:
    """Log in to the database of a JDBC connector. Nothing for others.

    Raises:
        ConnectError: it cannot be used; the message says why.
    """
    from airflow_connect.databases.connecting import Database
    from airflow_connect.databases.keys import URL
    from airflow_connect.databases.settings import ConnectionSettings

    references = resolve_references(spec.connector, spec.worker, spec.references)
    with references.hiding_errors():
        connector: dict[str, Any] = dict(references.resolve(spec.connector))
        if not str(connector.get(URL) or "").startswith(_JDBC):  # Search sinks have this key as well.
            return
        parsed = connector_definition(connector).parse(connector)
        with Database(ConnectionSettings.from_parsed(parsed, connector)) as database, database.connected():
            found = f"{database.engine.dialect.name} answers and accepts the login."
    yield f"{spec.connector.get('name')}: database", found, "", True


def _lifecycle(transport: S3Transport, did: str) -> Iterator[Result]:
    from airflow_connect.stores.s3.http.transport import S3Request

    request = S3Request(
        "GetBucketLifecycleConfiguration", "GET", ("s3:GetLifecycleConfiguration",), query=(("lifecycle", ""),)
    )
    reply, refusal = transport.send(request)
    if reply.status == 501:
        yield did, "This store has no lifecycle rules. Runs sweep unfinished uploads of their predecessors.", "", True
        return
    if refusal is not None and refusal.code != "NoSuchLifecycleConfiguration":
        yield did, f"The rules could not be read (status {reply.status}).", "Permit s3:GetLifecycleConfiguration.", True
        return
    days = [int(found) for found in _DAYS.findall(reply.body)] if refusal is None else []
    if not days:
        yield (
            did,
            _NO_RULE,
            "Add a rule with AbortIncompleteMultipartUpload after 7 days.",
            True,
        )
    elif min(days) < FEWEST_DAYS:
        yield (
            did,
            _SOON.format(counted(min(days), "day")),
            f"Let it wait for 7 days, at least {FEWEST_DAYS}.",
            False,
        )
    else:
        yield did, f"Unfinished uploads are aborted after {min(days)} days.", "", True


def _clock(transport: S3Transport, did: str) -> Iterator[Result]:
    from airflow_connect.stores.s3.http.transport import S3Request

    reply, _ = transport.send(S3Request("HeadBucket", "HEAD", ("s3:ListBucket",)))
    yield did, *compared_clocks(reply.headers.get("date", ""), time.time())


def compared_clocks(date: str, now_s: float) -> tuple[str, str, bool]:
    """What the header `Date` of an answer says about this clock: found, to do, whether it is in order.

    Args:
        date: as in RFC 9110, or "".
        now_s: this clock, seconds since the epoch.
    """
    try:
        skew_s = abs(now_s - parsedate_to_datetime(date).timestamp())
    except ValueError:
        return "The store does not tell its time.", "", True
    if skew_s > MOST_SKEW_S:
        return f"This clock and the store's differ by {skew_s:.0f} s.", "Synchronise the clock (NTP).", False
    return "This clock and the store's agree.", "", True
