"""Users of the REST API with their passwords: `rest.extension.classes` and `rest.basic.auth.file`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from airflow_connect.errors import ConfigError
from airflow_connect.java.properties_file import parse_properties

EXTENSIONS = "rest.extension.classes"
USERS_FILE = "rest.basic.auth.file"
BASIC_AUTH = "BasicAuthSecurityRestExtension"


def users_of(text: Mapping[str, str]) -> dict[str, str]:
    """Password by name; {} without the keys.

    Raises:
        ConfigError: a key is missing, or the file has no users, or everybody can read it.
    """
    classes = [name.strip() for name in text.get(EXTENSIONS, "").split(",") if name.strip()]
    unknown = [name for name in classes if name.rpartition(".")[2] != BASIC_AUTH]
    if unknown:
        raise ConfigError(
            f"{EXTENSIONS} names {unknown[0]}, which is not known here.",
            config_path=EXTENSIONS,
            suggestion=f"Only {BASIC_AUTH} is supported.",
        )
    path = text.get(USERS_FILE, "")
    if bool(classes) != bool(path):
        missing, given = (USERS_FILE, EXTENSIONS) if classes else (EXTENSIONS, USERS_FILE)
        raise ConfigError(
            f"{given} is set, but {missing} is not, so no request would be authenticated.",
            code="worker.users",
            config_path=missing,
            suggestion=f"Set {EXTENSIONS} to {BASIC_AUTH}, and {USERS_FILE} to a file with lines `user=password`.",
        )
    return _read_users(path) if path else {}


def _read_users(path: str) -> dict[str, str]:
    try:
        mode, users = Path(path).stat().st_mode, parse_properties(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The users cannot be read from {path}: {error.__class__.__name__}.",
            code="worker.users",
            config_path=USERS_FILE,
            suggestion="Name a properties file with a line `user=password` for each user.",
        ) from error
    if not users or not all(users.values()) or mode & 0o007:
        why = "can be read or written by every user of this machine" if users and all(users.values()) else (
            "has no user, or a user without a password"
        )  # fmt: skip
        raise ConfigError(
            f"The file {path} {why}.",
            code="worker.users",
            config_path=USERS_FILE,
            suggestion=f"Write a line `user=password` for each user, and run: chmod 640 {path}",
        )
    return dict(users)
