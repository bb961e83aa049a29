"""A directory as a store: files are staged below `+tmp`, and published by giving them their final names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.stores.local.publish import LocalPublisher
    from airflow_connect.stores.local.staging import LocalStager


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A directory that the driver and all executors see under the same path.

    Attributes:
        root: its absolute path, or its address `file:///path`.
    """

    root: str

    def __post_init__(self) -> None:
        """Turn an address into a path.

        Raises:
            ConfigError: it is relative, or not a file address.
        """
        object.__setattr__(self, "root", local_path(self.root))

    @property
    def name(self) -> str:
        """`file:///path`."""
        return f"file://{self.root}"

    def stager(self, run_id: str) -> LocalStager:
        """Stages files; `run_id` goes into their tokens."""
        from airflow_connect.stores.local.staging import LocalStager

        return LocalStager(self.root, run_id)

    def publisher(self, *, probe_prefix: str, overwrite: bool) -> LocalPublisher:
        """Gives files their names."""
        from airflow_connect.stores.local.publish import LocalPublisher

        return LocalPublisher(self.root, probe_prefix=probe_prefix, overwrite=overwrite)


def is_local(address: str) -> bool:
    """Whether an address names a directory of this machine: `file:` or an absolute path."""
    return address.startswith("/") or urlsplit(address).scheme.lower() == "file"


def local_path(address: str, key: str = "store.url") -> str:
    """The absolute path of an address.

    Args:
        address: `file:///path`, `file:/path` or `/path`.
        key: the configuration key, for the message.

    Raises:
        ConfigError: anything else; a relative path would mean a different directory in every process.
    """
    path = address
    if address.lower().startswith("file:"):
        parts = urlsplit(address)
        path = unquote(parts.path) if parts.netloc in ("", "localhost") else ""
    if not path.startswith("/") or "\0" in path:
        raise ConfigError(
            f"{key}={address} is not a directory on this machine.",
            config_path=key,
            suggestion="Write the absolute path as file:///data/out.",
        )
    return "/" + os.path.normpath(path).lstrip("/")
