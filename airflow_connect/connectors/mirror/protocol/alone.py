"""What the checkpoint and the heartbeat connector have in common: they write records that have no position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.source import SourceOffset
from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, admin_client

NO_POSITION: SourceOffset = {"offset": 0}
"""The offset of every source partition, as MirrorMaker 2 stores it."""
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
RAW_BYTES: Mapping[str, str] = {"key.converter": _BYTES, "value.converter": _BYTES, "header.converter": _BYTES}
"""MirrorMaker 2 sets them for its own workers (MirrorMakerConfig); any other converter would change the bytes."""


def target_admin(settings: Mapping[str, Any], cluster_id: str) -> Admin:
    """The admin client of the target cluster.

    Args:
        settings: of the client.
        cluster_id: of the cluster that records go to.

    Raises:
        ConfigError: they are not the same cluster: topics would be created in the wrong one.
    """
    target = admin_client(settings)
    if target.cluster_id(API_TIMEOUT_S) != cluster_id:
        servers = target.settings.get("bootstrap.servers")
        raise ConfigError(
            f"{MirrorKeys.target_servers}={servers} is not the cluster of the worker, to which records are written.",
            suggestion=f"Set {MirrorKeys.target_servers} and the worker's bootstrap.servers to the same cluster.",
            config_path=MirrorKeys.target_servers.name,
        )
    return target


def check_altered(
    offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None], members: Mapping[str, type]
) -> bool:
    """Check offsets that are being altered (KIP-875); anything may be deleted. Returns True.

    Args:
        members: names and types of the members of a source partition.

    Raises:
        ConfigError: a partition or an offset does not have MirrorMaker 2's form.
    """
    for partition, offset in offsets.items():
        if offset is None:
            continue
        given = dict(partition)
        is_right = set(given) == set(members) and all(isinstance(given[name], kind) for name, kind in members.items())
        if not is_right or dict(offset) != dict(NO_POSITION):
            raise ConfigError(
                f"A source partition has {', '.join(members)}, and its offset is {dict(NO_POSITION)}, unlike"
                f" {given} and {dict(offset)}.",
                code="offset.refused",
                suggestion="Delete the offset, or leave it as it is: this connector reads no position.",
            )
    return True
