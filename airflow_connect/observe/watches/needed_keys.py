"""Which keys of a configuration are needed to look at its connector. Imports no Kafka client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.config.keys import sink as keys

CONSUMER_OVERRIDE, ADMIN_OVERRIDE = "consumer.override.", "admin.override."
_OF_TARGETS = frozenset({keys.NAME, keys.TOPICS, keys.TOPICS_REGEX, keys.OFFSETS_OUT_OF_RANGE})
_NOT_FOR_PEEKING = ("spark.", "producer.", "key.converter", "value.converter", "header.converter")


def without_unneeded(connector: Mapping[str, Any], worker: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of both configurations that `target_of` reads, so that no others have to travel to a triggerer."""
    return (
        {k: v for k, v in connector.items() if k in _OF_TARGETS or k.startswith((CONSUMER_OVERRIDE, ADMIN_OVERRIDE))},
        {k: v for k, v in worker.items() if not k.startswith(_NOT_FOR_PEEKING)},
    )
