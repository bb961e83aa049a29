"""HTTP to a Schema Registry: several base URLs, credentials, TLS, retries, readable errors.

Nothing that is raised here shows credentials: user and password are taken out of URLs before they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import orjson
import urllib3

from airflow_connect.errors import AccessError, ConfigError, UnavailableError
from airflow_connect.proxies import Proxy, of_environment
from airflow_connect.registry.credentials import authorization
from airflow_connect.registry.settings import HEADERS, RegistryConfig
from airflow_connect.registry.tls import tls_context
from airflow_connect.retrying import REAL_TIME, Backoff, Jitter, Retry, Timing

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_RETRIED = frozenset({408, 429})
_SERVER_ERROR = 500
_REDIRECTS = range(300, 400)
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404


class RegistryResponse(NamedTuple):
    """A response that is neither a server failure nor a refusal of access.

    Attributes:
        status: HTTP status.
        document: parsed JSON, or None if it was not JSON.
    """

    status: int
    document: Any

    @property
    def is_ok(self) -> bool:
        """Whether the request succeeded."""
        return self.status < 300

    @property
    def error_code(self) -> int:
        """The registry's own code, such as 40403, or the HTTP status."""
        return self.status if self._own_code is None else self._own_code

    @property
    def _own_code(self) -> int | None:
        code = self.document.get("error_code") if isinstance(self.document, dict) else None
        return code if isinstance(code, int) else None

    @property
    def is_absence(self) -> bool:
        """Whether the registry says that it has no such subject, version or schema: 404 and an error code 404xx.

        A proxy or a wrong base path also answers 404, and a registry's own server answers a path that it does not have
        with `error_code` 404. Neither says anything about schemas.
        """
        return self.status == _NOT_FOUND and self.error_code // 100 == _NOT_FOUND

    def is_refusal(self, status: int) -> bool:
        """Whether the registry itself refuses with this status: a proxy does not send the error code (409, 42201)."""
        code = self._own_code
        return self.status == status and code is not None and status in (code, code // 100)

    @property
    def message(self) -> str:
        """The registry's message, without a final full stop."""
        text = self.document.get("message") if isinstance(self.document, dict) else None
        return str(text).strip().rstrip(".") if text else f"HTTP status {self.status}"


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Timeouts and retries; times in seconds."""

    connect_timeout_s: float
    read_timeout_s: float
    retries: int
    backoff: Backoff


class RegistryConnection:
    """Sends requests to the first base URL that answers; kept-alive connections."""

    def __init__(self, parsed: Mapping[str, Any], raw: Mapping[str, str], timing: Timing = REAL_TIME) -> None:
        """`parsed`: values of `settings.shared_keys()`; `raw`: all given keys, for `request.header.*`.

        Raises:
            ConfigError: a URL, a file or a combination that cannot be used.
        """
        config = RegistryConfig(raw, parsed)
        self._urls, in_url = _split_user_info(config.urls)
        self._headers = {"Accept": f"{CONTENT_TYPE}, application/json", "User-Agent": "airflow-connect"}
        self._headers |= authorization(config, in_url)
        prefix = HEADERS
        self._headers |= {key[len(prefix) :]: str(v) for key, v in raw.items() if key.startswith(prefix)}
        self._retry = RetrySettings(
            connect_timeout_s=config.connect_timeout_ms / 1000,
            read_timeout_s=config.read_timeout_ms / 1000,
            retries=config.retries,
            backoff=Backoff(config.wait_ms / 1000, config.max_wait_ms / 1000, Jitter.WHOLE),
        )
        self._tls = tls_context(parsed) if any(url.startswith("https:") for url in self._urls) else None
        self._proxy = Proxy(f"http://{config.proxy_host}:{config.proxy_port}") if config.proxy_host else None
        self._pools: dict[str, urllib3.PoolManager] = {}
        self._current = 0
        self._timing = timing

    def request(self, method: str, path: str, body: Any = None, *, access: str) -> RegistryResponse:
        """One request, repeated while the registry fails.

        Args:
            method: HTTP method.
            path: below the base URL, encoded (`segment`).
            body: JSON document or None.
            access: what the request does, such as "read schema 7"; a refusal names it as the missing permission.

        Raises:
            AccessError: 401 or 403.
            ConfigError: the base URL redirects elsewhere.
            UnavailableError: no base URL responded in any attempt.
        """
        data = None if body is None else orjson.dumps(body)
        failure = ""
        tries = Retry(self._retry.backoff, retries=self._retry.retries, timing=self._timing)
        while True:
            for _ in self._urls:
                url = self._urls[self._current]
                try:
                    response = self._send(method, url, path, data)
                except (urllib3.exceptions.HTTPError, OSError) as error:
                    failure = f"{url} gave no answer ({_reason(error)})"
                else:
                    if response.status not in _RETRIED and response.status < _SERVER_ERROR:
                        return _accepted(response, url, access)
                    failure = f"{url} answered with status {response.status}: {_parsed(response).message}"
                self._current = (self._current + 1) % len(self._urls)
            if not tries.pause():
                raise _away(access, failure, tries.failures)

    def _send(self, method: str, url: str, path: str, data: bytes | None) -> urllib3.BaseHTTPResponse:
        headers = self._headers if data is None else {**self._headers, "Content-Type": CONTENT_TYPE}
        timeout = urllib3.Timeout(connect=self._retry.connect_timeout_s, read=self._retry.read_timeout_s)
        pool = self._pool(url)
        return pool.request(method, url + path, body=data, headers=headers, timeout=timeout, retries=False)

    def _pool(self, url: str) -> urllib3.PoolManager:
        pool = self._pools.get(url)
        if pool is None:
            options: dict[str, Any] = {"num_pools": 2}
            if self._tls is not None:
                options["ssl_context"] = self._tls
                if not self._tls.check_hostname:
                    options["assert_hostname"] = False  # urllib3 compares by itself
            proxy = self._proxy or of_environment(url)
            pool = proxy.manager(**options) if proxy else urllib3.PoolManager(**options)
            self._pools[url] = pool
        return pool


def segment(text: str) -> str:
    """Encode a path segment: subjects may contain slashes and blanks."""
    return quote(text, safe="")


def _accepted(response: urllib3.BaseHTTPResponse, url: str, access: str) -> RegistryResponse:
    answer = _parsed(response)
    if answer.status in _REDIRECTS:
        raise _redirected(response, url, access)
    if answer.status not in (_UNAUTHORIZED, _FORBIDDEN):
        return answer
    if answer.status == _UNAUTHORIZED:
        raise AccessError(
            f"The Schema Registry {url} rejects the credentials (status 401) of a request to {access}.",
            code="registry.credentials",
            suggestion=f"Check {RegistryConfig.login_source} and {RegistryConfig.login},"
            f" or {RegistryConfig.bearer_token}.",
            config_path=RegistryConfig.login_source.name,
        )
    raise AccessError(
        f"The Schema Registry {url} does not allow this user to {access} (status 403): {answer.message}.",
        code="registry.permission",
        suggestion=f"Grant the registry's user the permission to {access}.",
        config_path=RegistryConfig.urls.name,
    )


def _away(access: str, failure: str, attempts: int) -> UnavailableError:
    return UnavailableError(
        f"The Schema Registry could not {access}: {failure}, at the last of {attempts} attempts.",
        code="registry.unavailable",
        suggestion=f"Check {RegistryConfig.urls}, check that the registry is running, and run again.",
        config_path=RegistryConfig.urls.name,
    )


def _redirected(response: urllib3.BaseHTTPResponse, url: str, access: str) -> ConfigError:
    """The error for a redirect: it is not followed, because credentials are for the configured host and scheme only."""
    parts = urlsplit(response.headers.get("Location", ""))
    # Anything before or after the host may be secret.
    target = f" to {parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return ConfigError(
        f"The Schema Registry {url} redirects{target} (status {response.status}) when asked to {access}. Redirects are "
        "not followed, because requests may carry credentials.",
        code="registry.redirect",
        suggestion=f"Set {RegistryConfig.urls} to the registry's own base URL.",
        config_path=RegistryConfig.urls.name,
    )


def _parsed(response: urllib3.BaseHTTPResponse) -> RegistryResponse:
    try:
        return RegistryResponse(response.status, orjson.loads(response.data))
    except orjson.JSONDecodeError:
        return RegistryResponse(response.status, None)


def _reason(error: BaseException) -> str:
    """The innermost cause: urllib3 wraps it several times, each time with the representation of the pool."""
    while (cause := getattr(error, "reason", None)) and isinstance(cause, BaseException):
        error = cause
    text = str(error).split(": ", 1)[-1] if isinstance(error, urllib3.exceptions.HTTPError) else str(error)
    return text or type(error).__name__


def _split_user_info(urls: Iterable[str]) -> tuple[list[str], str]:
    """URLs without user and password and without a final slash; the first `user:password` found, decoded."""
    clean, found = [], ""
    for url in urls:
        # Name only the key of an invalid URL, which may contain a password.
        try:
            parts = urlsplit(url.strip())
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise _wrong_url() from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _wrong_url()
        if parts.username is not None and not found:
            found = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        clean.append(urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", "")))
    if not clean:
        raise _wrong_url()
    return clean, found


def _wrong_url() -> ConfigError:
    return ConfigError(
        f"Invalid value for configuration {RegistryConfig.urls}: it must hold URLs that begin with http:// or https://.",
        suggestion="Give the registry's base URL, such as http://registry:8081; separate several by commas.",
        config_path=RegistryConfig.urls.name,
    )
