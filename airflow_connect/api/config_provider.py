"""What a config provider is: the place that keeps what a configuration only refers to (KIP-297).

A worker lists providers in `config.providers`; `config.providers.<name>.class` is the class and
`config.providers.<name>.param.*` are its settings. The class is named by its Java name, its alias, an entry point
of the group `airflow_connect.config_providers` or its dotted path, and is made without arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class ConfigProvider(Protocol):
    """Looks up the values of references `${name:path:key}`. Used by one thread, for one look-up, then closed."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the provider's own settings, `param.` removed from their names.

        Raises:
            ConfigError: a setting is wrong; `config_path` is its name as the provider knows it.
        """

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of some keys.

        Args:
            path: what stands between the name of the provider and the key, "" in `${name:key}`.
            keys: at least one.

        Returns:
            Values by key; a key that does not exist is left out, which becomes an error that names it.

        Raises:
            ConfigError: the path cannot be used. The message must not hold anything that was read there.
            UnavailableError: a server did not answer.
        """

    def close(self) -> None:
        """Give back what `configure` and `get` have opened."""
