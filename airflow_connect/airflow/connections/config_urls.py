"""Configuration files in object storage, next to files on this machine. Read only while a task runs."""

from __future__ import annotations

from typing import Any

from airflow_connect.errors import AccessError, ConfigError, UnavailableError
from airflow_connect.runtime.config_files import connector_of, read_connector_file, read_worker_file, worker_of


def read_connector(path: str) -> dict[str, Any]:
    """A connector's configuration from a file, or from a URL such as `s3://aws_default@bucket/orders.json`.

    The part before `@` is an Airflow connection. What can be read depends on the installed providers
    (`airflow.sdk.ObjectStoragePath`).

    Raises:
        ConfigError: it is missing, cannot be understood, or no provider for its scheme is installed.
        AccessError, UnavailableError: the store refused, or did not answer.
    """
    return connector_of(_text(path), path) if _is_url(path) else read_connector_file(path)


def read_worker(path: str) -> dict[str, Any]:
    """A worker's configuration; see `read_connector`."""
    return worker_of(_text(path), path) if _is_url(path) else read_worker_file(path)


def _is_url(path: str) -> bool:
    return "://" in path


def _text(url: str) -> str:
    from airflow.sdk import ObjectStoragePath

    try:
        content: str = ObjectStoragePath(url).read_text()
    except FileNotFoundError as error:
        raise ConfigError(f"There is no object {url}.", code="config.file_missing") from error
    except PermissionError as error:
        raise AccessError(f"{url} may not be read: {error}.") from error
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"{url} cannot be read: {error}.",
            code="config.file_missing",
            suggestion="Install the provider of this store with its file system, such as"
            ' "apache-airflow-providers-amazon[s3fs]" for s3://.',
        ) from error
    except OSError as error:
        raise UnavailableError(f"{url} could not be read: {error}.") from error
    return content


__all__ = ["read_connector", "read_worker"]
