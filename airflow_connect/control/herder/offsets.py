"""Offsets of connectors: read, set and reset, with the texts of Kafka Connect (KIP-875)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_connect.config.resolved.client_layers import consumer_group
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.errors import ConfigError, ConnectError, OffsetError
from airflow_connect.kafka.admin.consumer_group import every_committed_offset
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.observe.status.connector_state import committed_offsets
from airflow_connect.runtime.driver.class_of_connector import names_source
from airflow_connect.runtime.driver.entry import reset_offsets, set_offsets
from airflow_connect.runtime.spec import RunSpec

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
NO_TOPIC = "config.topic_missing"
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_DONE = "The offsets for this connector have been {} successfully"


def entries_of(body: Any) -> list[Mapping[str, Any]]:
    """The entries of a request to alter offsets.

    Raises:
        RefusedError: there are none, or they have another form.
    """
    entries = body.get("offsets") if isinstance(body, Mapping) else None
    if body is not None and not isinstance(body, Mapping):
        raise RefusedError('The body must be a JSON object: {"offsets": [{"partition": {...}, "offset": {...}}]}.')
    if not entries:
        raise RefusedError("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise RefusedError('`offsets` must be a list of {"partition": {...}, "offset": {...}}; null deletes an offset.')
    return entries


def offsets_of(spec: RunSpec, admin: Admin) -> dict[str, Any]:
    """ConnectorOffsets: committed offsets of a connector."""
    try:
        return {"offsets": committed_offsets(spec)}
    except ConnectError as error:
        # Kafka Connect lists the offsets of the group, whatever has become of the topics.
        if names_source(spec) or error.code != NO_TOPIC:
            raise
        group = consumer_group(spec.worker, spec.connector, str(spec.connector["name"]))
        found = every_committed_offset(admin, group)
    return {
        "offsets": [
            {"partition": {TOPIC: place.topic, PARTITION: place.partition}, "offset": {OFFSET: offset}}
            for place, offset in sorted(found.items())
        ]
    }


def alter(spec: RunSpec, entries: list[Mapping[str, Any]]) -> str:
    """Set offsets; returns the message.

    Raises:
        RefusedError: the offsets have another form, or cannot be those of the connector.
    """
    wanted: Any = list(entries) if names_source(spec) else _of_sink(entries)
    try:
        set_offsets(spec, wanted)
    except (ConfigError, OffsetError) as error:
        raise RefusedError(str(error)) from error
    return _DONE.format("altered")


def reset(spec: RunSpec) -> str:
    """Delete all offsets; returns the message.

    Raises:
        RefusedError: the connector does not allow it.
    """
    try:
        reset_offsets(spec)
    except (ConfigError, OffsetError) as error:
        raise RefusedError(str(error)) from error
    return _DONE.format("reset")


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, Mapping) and all(
        entry.get(member) is None or isinstance(entry[member], Mapping) for member in ("partition", "offset")
    )


def _of_sink(entries: list[Mapping[str, Any]]) -> dict[str, int | None]:
    """Source: SinkUtils.parseSinkConnectorOffsets; of several entries for one partition the last counts."""
    return dict(_one_of_sink(entry) for entry in entries)


def _one_of_sink(entry: Mapping[str, Any]) -> tuple[str, int | None]:
    partition, offset = entry.get("partition"), entry.get("offset")
    if partition is None:
        raise RefusedError("The partition for a sink connector offset cannot be null or missing")
    if TOPIC not in partition or PARTITION not in partition:
        raise RefusedError(
            f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'"
        )
    if partition[TOPIC] is None:
        raise RefusedError("Kafka topic names must be valid strings and may not be null")
    if partition[PARTITION] is None:
        raise RefusedError("Kafka partitions must be valid numbers and may not be null")
    number = _whole(partition[PARTITION], "partition", "Partition", bits=32)
    place = f"{partition[TOPIC]}-{number}"
    if offset is None:
        return place, None
    if OFFSET not in offset:
        raise RefusedError("The offset for a sink connector should either be null or contain the key 'kafka_offset'")
    return place, _whole(offset[OFFSET], "offset", "Offset", bits=64)


def _whole(value: Any, what: str, title: str, bits: int) -> int:
    text = "null" if value is None else str(value)
    if isinstance(value, bool) or not _NUMBER.fullmatch(text) or int(text) >= 1 << (bits - 1):
        raise RefusedError(
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{text}'. {title} values for"
            " sink connectors need to be integers."
        )
    if int(text) < 0:
        raise RefusedError(f"{title} values for sink connectors cannot be negative: {text}.")
    return int(text)
