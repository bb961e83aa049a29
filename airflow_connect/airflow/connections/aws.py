"""Turns an Airflow `aws` connection into credentials, by itself or through Amazon's provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError

if TYPE_CHECKING:
    from airflow.sdk import Connection

PROVIDER = "apache-airflow-providers-amazon"
_OWN = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region_name": "region",
    "endpoint_url": "endpoint_url",
    "role_arn": "role_arn",
    "external_id": "external_id",
}
_NEEDS_PROVIDER = ("profile_name", "session_kwargs", "s3_config_file", "aws_account_id", "aws_iam_role")
_WEB_IDENTITY = "assume_role_with_"
_OWN_ROLE_METHOD = "assume_role"
_NOT_FOR_CLIENTS = {
    "config_kwargs": "Remove it here and set the keys of the connector instead, such as s3.path.style.access.enabled "
    "or s3.proxy.url.",
    "verify": "Remove it here and name the authority's certificates in the environment variable AWS_CA_BUNDLE.",
}
"""Extras for boto3's clients. This package writes to S3 with its own client, which has its own configuration keys."""


def credentials_of(connection: Connection, extra: Mapping[str, Any]) -> dict[str, str]:
    """The credentials of a connection, as `RunSpec.aws` needs them.

    Keys, and a role that is assumed with them, are read here; the driver and the executors renew the role's keys.
    Every other way to log in is left to the hook of Amazon's provider. Its keys are valid until their session ends.

    Args:
        connection: login and password are the keys.
        extra: the connection's extra.

    Raises:
        ConfigError: an extra would be ignored, or needs the provider, which is not installed.
        AccessError: the hook got no credentials.
        UnavailableError: the service that issues them did not answer.
    """
    for name, advice in _NOT_FOR_CLIENTS.items():
        if extra.get(name) not in (None, "", {}, True, "true", "True"):
            raise _refused(connection, name, advice)
    needed = _needs_provider(extra)
    return _through_hook(connection, needed) if needed else _read_here(connection, extra)


def _read_here(connection: Connection, extra: Mapping[str, Any]) -> dict[str, str]:
    given = {
        "access_key_id": connection.login,
        "secret_access_key": connection.password,
        "external_id": (extra.get("assume_role_kwargs") or {}).get("ExternalId"),
        **{ours: extra.get(theirs) for theirs, ours in _OWN.items() if extra.get(theirs)},
    }
    if endpoint := _service(extra, "s3").get("endpoint_url"):
        given["endpoint_url"] = endpoint
    return {key: str(value) for key, value in given.items() if value}


def _needs_provider(extra: Mapping[str, Any]) -> str:
    """The first extra that only the provider can read, or ""."""
    for name, value in extra.items():
        if value and (name in _NEEDS_PROVIDER or name.startswith(_WEB_IDENTITY)):
            return name
    if extra.get("assume_role_method", _OWN_ROLE_METHOD) != _OWN_ROLE_METHOD:
        return "assume_role_method"
    if set(extra.get("assume_role_kwargs") or {}) - {"ExternalId"}:
        return "assume_role_kwargs"
    return "service_config" if _service(extra, "sts") else ""


def _service(extra: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return (extra.get("service_config") or {}).get(name) or {}


def _through_hook(connection: Connection, needed: str) -> dict[str, str]:
    try:
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook  # type: ignore[import-not-found]
    except ModuleNotFoundError as error:
        raise _refused(connection, needed, f"Install {PROVIDER} where tasks run, or remove it.") from error
    hook = AwsBaseHook(aws_conn_id=connection.conn_id, client_type="s3")
    try:
        found = hook.get_session().get_credentials()
        keys = None if found is None else found.get_frozen_credentials()
    except Exception as error:
        raise _failed(connection, error) from error
    if keys is None:
        raise AccessError(
            f"Connection {connection.conn_id!r} gives no AWS credentials.",
            code="airflow.aws_credentials",
            suggestion=f"Check its extra {needed}.",
        )
    given = {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "session_token": keys.token,
        "region": hook.region_name,
        "endpoint_url": hook.conn_config.get_service_endpoint_url("s3"),
    }
    return {key: str(value) for key, value in given.items() if value}


def _failed(connection: Connection, error: Exception) -> ConnectError:
    from airflow_connect.stores.s3.http.credentials import is_unavailable

    message = f"Connection {connection.conn_id!r} gave no AWS credentials: {str(error).rstrip('.')}."
    if is_unavailable(error):
        return UnavailableError(message, code="airflow.aws_unavailable")
    return AccessError(message, code="airflow.aws_credentials", suggestion="Check the connection and its role.")


def _refused(connection: Connection, name: str, advice: str) -> ConfigError:
    return ConfigError(
        f"Connection {connection.conn_id!r} has the extra {name!r}, which would be ignored.",
        code="airflow.connection_extra",
        config_path=name,
        suggestion=advice,
    )
