"""Dead letters of a manifest as records for the commit transaction."""

from __future__ import annotations

from airflow_connect.exactly_once.journal import TopicRecord
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.runtime.dead_letter_codec import raw_bytes


def topic_records(manifest: Manifest) -> list[TopicRecord]:
    """The manifest's dead letters with their original bytes, timestamps and headers."""
    return [
        TopicRecord(
            topic=letter["topic"],
            key=raw_bytes(letter["key"]),
            value=raw_bytes(letter["value"]),
            headers=tuple((name, raw_bytes(value)) for name, value in letter["headers"]),
            timestamp=letter["timestamp"],
        )
        for letter in manifest.dead_letters
    ]
