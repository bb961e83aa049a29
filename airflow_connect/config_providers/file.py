"""`${file:path:key}`: the value of a key in a properties file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airflow_connect.config_providers.allowed_paths import AllowedPaths
from airflow_connect.errors import ConfigError
from airflow_connect.java.properties_file import decode, parse_properties


class FileConfigProvider:
    """org.apache.kafka.common.config.provider.FileConfigProvider. Setting: `allowed.paths`."""

    def __init__(self) -> None:
        """Until `configure` is called, everything may be read."""
        self._allowed = AllowedPaths({})

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take `allowed.paths`."""
        self._allowed = AllowedPaths(settings)

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of those `keys` that the file has.

        Raises:
            ConfigError: no path is given, it is not allowed, or the file cannot be read.
        """
        if not path:
            raise ConfigError(
                "The reference names no file.",
                code="config.reference_incomplete",
                suggestion="Write it as ${file:/path/to/secrets.properties:key}.",
            )
        file = self._allowed.check(path)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"Could not read properties from file {path}: {error.strerror or type(error).__name__}.",
                code="config.reference_unreadable",
                suggestion="Check the path and its permissions on the machine where the run is started.",
            ) from error
        found = parse_properties(decode(content), path)
        return {key: found[key] for key in keys if key in found}

    def close(self) -> None:
        """Nothing is open."""
