"""The contract of a config provider, which stores the values that a configuration refers to (KIP-297).

A worker lists providers in `config.providers`; `config.providers.<name>.class` is the class and
`config.providers.<name>.param.*` are its settings. The class is named by its Java name, its alias, an entry point
of the group `airflow_connect.config_providers` or its dotted path, and is created without arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class ConfigProvider(Protocol):
    """Looks up the values of references `${name:path:key}`. Used by one thread, for one look-up, then closed."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Set the provider's own settings; their names do not include `param.`.

        Raises:
            ConfigError: a setting is wrong; `config_path` is its name without prefix.
        """

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of some keys.

        Args:
            path: the part between the name of the provider and the key; "" for `${name:key}`.
            keys: at least one.

        Returns:
            Values by key; a key that does not exist is omitted, which is reported as an error with its name.

        Raises:
            ConfigError: the path is invalid. The message must not contain anything that was read from it.
            UnavailableError: a server did not answer.
        """

    def close(self) -> None:
        """Release what `configure` and `get` have opened."""
