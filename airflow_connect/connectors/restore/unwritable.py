"""Errors for records that a topic, or Kafka's client, does not take."""

from __future__ import annotations

from airflow_connect.connectors.restore.keys import TIMESTAMP, RestoreKeys
from airflow_connect.errors import DataError

NO_KEY, BAD_TIME = "restore.no_key", "restore.timestamp"
OTHER_TIMES = "Records whose timestamp cannot be written, and which got the time of the run (accept.loss=timestamp):"
DELETED_SOON = "Records that are older than their topic keeps them, and that Kafka deletes soon:"


def bad_name(where: str, name: str) -> DataError:
    """The name of a header would be cut; `where`: the record."""
    return DataError(
        f"{where} of the backup has a header whose name contains a zero byte ({name!r}). Kafka's client would write a"
        " shorter name.",
        code="restore.header_name",
        suggestion="This partition can only be restored up to that record.",
    )


def no_key(where: str, target: str) -> DataError:
    """A compacted topic takes no record without a key."""
    return DataError(
        f"{where} of the backup has no key, and {target} is compacted: Kafka does not take it.",
        code="restore.no_key",
        suggestion="Set cleanup.policy=delete for the topic; a restore of whole records does so with"
        f" {RestoreKeys.lifts}=true.",
    )


def bad_time(where: str, stamp: int | None, target: str) -> DataError:
    """A timestamp that the topic, or Kafka's client, does not take."""
    if stamp is not None and stamp > 0:
        return DataError(
            f"{where} of the backup has the timestamp {stamp}, which {target} does not take"
            " (message.timestamp.before.max.ms, message.timestamp.after.max.ms).",
            code="restore.timestamp",
            suggestion="Change these settings of the topic, and run again."
            f" {RestoreKeys.accepted}={TIMESTAMP} gives such records the time of the run.",
        )
    return DataError(
        f"{where} of the backup has the timestamp {stamp}, which Kafka's client cannot write.",
        code="restore.timestamp",
        suggestion=f"{RestoreKeys.accepted}={TIMESTAMP} gives such records the time of the run.",
    )
