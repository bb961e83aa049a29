"""`allowed.paths`: the folders and files that a provider may read (KIP-993)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from airflow_connect.errors import ConfigError

ALLOWED_PATHS = "allowed.paths"


class AllowedPaths:
    """The allowed folders and files; without the setting, all are allowed.

    Links are resolved before paths are compared, so a link inside an allowed folder cannot lead out of it. Kafka's own
    class compares the names only.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Read the setting.

        Raises:
            ConfigError: a path of it is not absolute or does not exist.
        """
        given = settings.get(ALLOWED_PATHS, "").strip()
        self._allowed = [_existing(text.strip()) for text in given.split(",")] if given else None

    def check(self, path: str) -> Path:
        """The real path of `path`, which is relative to the current folder if it is not absolute.

        Raises:
            ConfigError: it is not allowed.
        """
        real = Path(path).resolve()
        if self._allowed is not None and not any(real.is_relative_to(allowed) for allowed in self._allowed):
            raise ConfigError(
                f"{path} is outside the paths that {ALLOWED_PATHS} of the config provider allows.",
                code="config.path_not_allowed",
                suggestion=f"Move it below one of them, or add its folder to {ALLOWED_PATHS}.",
            )
        return real


def _existing(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute() or not path.exists():
        wrong = "does not exist" if path.is_absolute() else "is not absolute"
        raise ConfigError(
            f"The path {text!r} in {ALLOWED_PATHS} {wrong}.",
            config_path=ALLOWED_PATHS,
            suggestion="List existing folders or files by their absolute paths, comma separated.",
        )
    return path.resolve()
