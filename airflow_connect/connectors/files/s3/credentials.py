"""The classes that `s3.credentials.provider.class` may name: they get credentials from keys or a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from airflow_connect.connectors.files.s3.keys import S3StoreKeys
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
        own_id, own_secret = S3StoreKeys.access_key_id.of(parsed), S3StoreKeys.secret_access_key.of(parsed)
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
            role_arn=S3StoreKeys.role_arn.of(parsed),
            role_session_name=S3StoreKeys.role_session_name.of(parsed) or DEFAULT_SESSION_NAME,
            role_external_id=S3StoreKeys.role_external_id.of(parsed),
        )
