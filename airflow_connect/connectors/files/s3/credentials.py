"""The classes that `s3.credentials.provider.class` may name: they get credentials from keys or a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from airflow_connect.api.config.config_def import Password
from airflow_connect.connectors.files.s3 import keys
from airflow_connect.stores.s3.settings import S3Credentials

DEFAULT_SESSION_NAME = "airflow-connect"


class CredentialsProvider(Protocol):
    """One way to get credentials."""

    needs_role: bool
    """Whether `s3.credentials.provider.sts.role.arn` must be set."""

    def credentials(self, parsed: Mapping[str, Any], aws: Mapping[str, str]) -> S3Credentials:
        """Credentials to sign with.

        Args:
            parsed: typed values of the connector's configuration.
            aws: an Airflow `aws` connection, or {}; it is used if the connector has no keys of its own.
        """


class DefaultCredentialsProvider:
    """The connector's own keys, else the Airflow connection, else boto3's chain: environment, profile, machine."""

    needs_role = False

    def credentials(self, parsed: Mapping[str, Any], aws: Mapping[str, str]) -> S3Credentials:
        """See `CredentialsProvider`; a role of the Airflow connection is used together with the connection's keys."""
        own_id, own_secret = parsed[keys.ACCESS_KEY_ID], clear_text(parsed[keys.SECRET_ACCESS_KEY])
        if own_id or own_secret:
            return S3Credentials(access_key_id=own_id, secret_access_key=own_secret)
        return S3Credentials(
            access_key_id=aws.get("access_key_id", ""),
            secret_access_key=aws.get("secret_access_key", ""),
            session_token=aws.get("session_token", ""),
            role_arn=aws.get("role_arn", ""),
            role_session_name=DEFAULT_SESSION_NAME,
            role_external_id=aws.get("external_id", ""),
        )


class AssumeRoleCredentialsProvider:
    """The role in `s3.credentials.provider.sts.*`, assumed with the credentials of `DefaultCredentialsProvider`."""

    needs_role = True

    def credentials(self, parsed: Mapping[str, Any], aws: Mapping[str, str]) -> S3Credentials:
        """See `CredentialsProvider`."""
        source = DefaultCredentialsProvider().credentials(parsed, aws)
        return S3Credentials(
            access_key_id=source.access_key_id,
            secret_access_key=source.secret_access_key,
            session_token=source.session_token,
            role_arn=parsed[keys.ROLE_ARN],
            role_session_name=parsed[keys.ROLE_SESSION_NAME] or DEFAULT_SESSION_NAME,
            role_external_id=parsed[keys.ROLE_EXTERNAL_ID],
        )


def clear_text(secret: Password | None) -> str:
    """The secret, or "" if there is none."""
    return secret.value if secret is not None else ""
