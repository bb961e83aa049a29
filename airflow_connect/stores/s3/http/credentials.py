"""Keys for signing: static keys unchanged, everything else through botocore, which also renews them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_connect.errors import AccessError, ConnectError, UnavailableError
from airflow_connect.stores.s3.http.signing import Keys
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings

KeySource = Callable[[], Keys]
"""Returns keys that are valid now; safe to call from any thread."""

_HOW_TO_GIVE = (
    "Set aws.access.key.id and aws.secret.access.key, name an Airflow `aws` connection, "
    "set the AWS_* environment variables, or give the machine a role."
)


def key_source(settings: S3Settings) -> KeySource:
    """The keys that `settings` describe; no request is made and botocore is not imported for static keys.

    Raises:
        AccessError: the default chain finds no credentials.
    """
    given = settings.credentials
    if given.access_key_id and not given.role_arn:
        static = Keys(given.access_key_id, given.secret_access_key, given.session_token)
        return lambda: static
    credentials = _assumed_role(settings) if given.role_arn else _default_chain(given)

    def renewed() -> Keys:
        try:
            frozen = credentials.get_frozen_credentials()
        except Exception as error:
            raise _unavailable_or_refused(given, error) from error
        return Keys(frozen.access_key, frozen.secret_key, frozen.token or "")

    return renewed


def _session(given: S3Credentials) -> Any:
    from botocore.session import Session

    return Session(profile=given.profile or None)


def _default_chain(given: S3Credentials) -> Any:
    from botocore.exceptions import BotoCoreError

    try:
        found = _session(given).get_credentials()
    except BotoCoreError as error:
        raise _no_keys(given, error) from error
    if found is None:
        raise AccessError("No AWS credentials were found.", code="s3.no_credentials", suggestion=_HOW_TO_GIVE)
    return found


def _assumed_role(settings: S3Settings) -> Any:
    """The role's keys: fetched at first use, renewed 15 minutes before they expire (botocore's window)."""
    from botocore.credentials import AssumeRoleCredentialFetcher, Credentials, DeferredRefreshableCredentials

    given = settings.credentials
    session = _session(given)
    if given.access_key_id:
        source: Any = Credentials(given.access_key_id, given.secret_access_key, given.session_token or None)
    else:
        source = _default_chain(given)

    def client_for(service: str, **arguments: Any) -> Any:
        arguments["region_name"] = given.sts_region or settings.region
        return session.create_client(service, endpoint_url=given.sts_endpoint or None, **arguments)

    extra = {"RoleSessionName": given.role_session_name}
    if given.role_external_id:
        extra["ExternalId"] = given.role_external_id
    fetcher = AssumeRoleCredentialFetcher(client_for, source, given.role_arn, extra_args=extra)
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def is_unavailable(error: Exception) -> bool:
    """Whether a credentials service is unavailable or busy; otherwise it has refused."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

    status = 0
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return isinstance(error, (ConnectionError, HTTPClientError)) or status == 429 or status >= 500


def _unavailable_or_refused(given: S3Credentials, error: Exception) -> ConnectError:
    if is_unavailable(error):
        return UnavailableError(f"AWS credentials could not be fetched: {error}", code="s3.sts_unavailable")
    return _no_keys(given, error)


def _no_keys(given: S3Credentials, error: BaseException) -> AccessError:
    if given.role_arn:
        return AccessError(
            f"The role {given.role_arn} could not be assumed: {error}",
            code="s3.assume_role",
            config_path="s3.credentials.provider.sts.role.arn",
            suggestion="Its trust policy must allow these credentials (and external id) sts:AssumeRole.",
        )
    return AccessError(
        f"AWS credentials could not be loaded: {error}", code="s3.no_credentials", suggestion=_HOW_TO_GIVE
    )
