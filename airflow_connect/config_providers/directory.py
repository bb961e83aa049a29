"""`${dir:path:key}`: the content of the file `key` in a folder, as Kubernetes mounts secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from airflow_connect.config_providers.allowed_paths import AllowedPaths
from airflow_connect.errors import ConfigError


class DirectoryConfigProvider:
    """org.apache.kafka.common.config.provider.DirectoryConfigProvider. Setting: `allowed.paths`.

    A value is the whole content as UTF-8, including a final line end, as in Kafka.
    """

    def __init__(self) -> None:
        """Until `configure` is called, everything may be read."""
        self._allowed = AllowedPaths({})

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take `allowed.paths`."""
        self._allowed = AllowedPaths(settings)

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The contents of the files that exist.

        Raises:
            ConfigError: no path is given, it is not allowed or not a folder, or a file cannot be read.
        """
        if not path:
            raise ConfigError(
                "The reference names no folder.",
                code="config.reference_incomplete",
                suggestion="Write it as ${dir:/path/to/folder:file}.",
            )
        folder = self._allowed.check(path)
        if not folder.is_dir():
            raise ConfigError(
                f"There is no folder {path}.",
                code="config.reference_unreadable",
                suggestion="Check the path on the machine where the run is started.",
            )
        return {key: content for key in keys if (content := self._content(path, folder, key)) is not None}

    def _content(self, path: str, folder: Path, key: str) -> str | None:
        # A key with a separator would leave the folder.
        if not key or key in (".", "..") or "/" in key or "\0" in key or not (folder / key).is_file():
            return None
        try:
            return self._allowed.check(str(folder / key)).read_bytes().decode()
        except OSError as error:
            reason = error.strerror or type(error).__name__
        except UnicodeDecodeError:
            reason = "It is not UTF-8 text"
        raise ConfigError(
            f"The file {key} in folder {path} cannot be read: {reason}.",
            code="config.reference_unreadable",
            suggestion="Check its content and its permissions on the machine where the run is started.",
        )

    def close(self) -> None:
        """Nothing is open."""
