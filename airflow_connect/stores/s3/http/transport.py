"""Signed HTTP requests to one bucket.

Connection pool, retries, redirects. Knows nothing about multipart uploads.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.proxies import Proxy, of_environment
from airflow_connect.retrying import REAL_TIME, Backoff, Jitter, Retry, Timing
from airflow_connect.stores.s3.http.connections import Connections, DirectConnections, Target, tls_context
from airflow_connect.stores.s3.http.credentials import KeySource, key_source
from airflow_connect.stores.s3.http.errors import Attempted, HttpResponse, Refusal, read_refusal
from airflow_connect.stores.s3.http.redirects import FOLLOWED_STATUS, Address, redirected
from airflow_connect.stores.s3.http.signing import Signer, Unsigned, encode_path, encode_query, payload_hash
from airflow_connect.stores.s3.settings import S3Settings

USER_AGENT = "airflow-connect"
LONGEST_PAUSE_S = 20.0
"""Confluent's connector allows a day; a bounded run should fail sooner and be started again."""
Body = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class S3Request:
    """One request for the bucket or one of its keys.

    Attributes:
        operation: S3's name for it, for messages.
        permissions: IAM actions that it requires, for messages.
        headers: lower-case names.
        incomplete: describes what is missing from a successful reply, or ""; a truncated reply is requested again.
    """

    operation: str
    method: str
    permissions: tuple[str, ...]
    key: str = ""
    query: Sequence[tuple[str, str]] = ()
    headers: dict[str, str] = field(default_factory=dict)
    body: Body = b""
    incomplete: Callable[[HttpResponse], str] = field(default=lambda _: "")


class S3Transport:
    """Sends requests and returns complete replies; one per process and bucket, used by many threads."""

    def __init__(
        self,
        settings: S3Settings,
        keys: KeySource | None = None,
        timing: Timing = REAL_TIME,
    ) -> None:
        """Nothing is sent and no credentials are fetched before the first request.

        Args:
            settings: bucket, address, credentials, retries.
            keys: credentials; default: those of `settings`.
            timing: pauses between tries.
        """
        self.settings = settings
        # Full jitter, as in Confluent's S3 sink.
        self._backoff = Backoff(settings.retry_backoff_ms / 1000, LONGEST_PAUSE_S, Jitter.WHOLE)
        self._keys = keys
        self._timing = timing
        self._signer = Signer(settings.region)
        base = urlsplit(settings.base_url)
        self._home = Address(base.scheme, _host_header(base.scheme, base.netloc), base.path)
        self._tls = tls_context() if base.scheme == "https" else None
        self._connections: dict[str, Connections] = {}
        self.repeated: set[str] = set()
        """Operations with a repeated request: the server may have carried it out twice."""

    def attempted(self, request: S3Request) -> Attempted:
        """Describe `request` for messages."""
        return Attempted(
            request.operation, self.settings.bucket, request.key, request.permissions, self.settings.region
        )

    def begin_tries(self, least_retries: int = 0) -> Retry:
        """The tries of one request or step: the first one, then `s3.part.retries` or `least_retries` more."""
        retries = max(least_retries, self.settings.part_retries)
        return Retry(self._backoff, retries=retries, timing=self._timing)

    def send(self, request: S3Request, least_retries: int = 0) -> tuple[HttpResponse, Refusal | None]:
        """Send until there is a final reply, which another try would not change.

        Args:
            request: what to send; must be repeatable.
            least_retries: minimum number of retries, if giving up is expensive.

        Returns:
            the reply, and the error in it that is final, or None.

        Raises:
            UnavailableError: no final reply after all tries; names operation, key and the last failure.
            AccessError: no credentials, or the server's certificate is not trusted.
        """
        tries, address = self.begin_tries(least_retries), self._home
        refusal: Refusal | None
        while True:
            try:
                reply = self._once(request, address)
            except ssl.SSLCertVerificationError as error:
                raise self._tls_not_trusted(error) from error
            except (http.client.HTTPException, OSError) as error:
                failure, refusal = _described(error), None
            else:
                refusal = read_refusal(reply)
                if address is self._home and (moved := self._moved_to(reply)):
                    address = moved
                    continue
                failure = _failure(request, reply, refusal)
                if not failure:
                    return reply, refusal
            if not tries.pause():
                is_damaged = refusal is not None and refusal.is_damage
                raise self._gave_up(request, failure, tries.failures, is_damaged=is_damaged)
            self.repeated.add(request.operation)

    def close(self) -> None:
        """Close idle connections."""
        for connections in self._connections.values():
            connections.close()

    def _once(self, request: S3Request, address: Address) -> HttpResponse:
        if self._keys is None:
            self._keys = key_source(self.settings)
        base_path, host = address.base_path, address.host
        path = f"{base_path}/{encode_path(request.key)}" if request.key else base_path or "/"
        query = encode_query(request.query)
        # Check this over TLS too: TLS ends at proxies and load balancers, and does not protect data beyond them.
        unsigned = Unsigned(request.method, host, path, query, request.headers, payload_hash(request.body))
        headers = self._signer.headers(unsigned, self._keys())
        headers["user-agent"] = USER_AGENT
        headers["content-length"] = str(len(request.body))
        target = f"{path}?{query}" if query else path
        connections = self._connections.get(host) or self._connections_to(host)
        return connections.exchange(request.method, target, headers, request.body)

    def _connections_to(self, host: str) -> Connections:
        given = self.settings
        parts = urlsplit(f"{self._home.scheme}://{host}")
        timeouts_s = given.connect_timeout_ms / 1000, given.read_timeout_ms / 1000
        target = Target(parts.hostname or "", parts.port, self._tls, *timeouts_s)
        most_idle = max(given.upload_threads, given.publish_threads)
        made: Connections
        if proxy := _proxy_of(given):
            from airflow_connect.stores.s3.http.proxied import ProxiedConnections

            made = ProxiedConnections(target, proxy, most_idle)
        else:
            made = DirectConnections(target, most_idle)
        # Two threads may get here at once; one pool is kept, the other is dropped unused.
        return self._connections.setdefault(host, made)

    def _moved_to(self, reply: HttpResponse) -> Address | None:
        """Where Amazon redirects requests for a new bucket; each request follows one such redirect."""
        if reply.status != FOLLOWED_STATUS:
            return None
        return redirected(self._home, self.settings.bucket, reply.headers.get("location", ""))

    def _gave_up(self, request: S3Request, failure: str, tries: int, *, is_damaged: bool) -> UnavailableError:
        place, reason = self.attempted(request).place, failure.rstrip(".")
        if is_damaged:
            return UnavailableError(
                f"{request.operation} of {place} failed {tries} times, because the data was changed on its way to"
                f" {self._home.host}: {reason}.",
                code="s3.damaged",
                suggestion="No damaged data was stored. Find what changes data in transit: a proxy, a load balancer, a"
                " network card or memory.",
            )
        return UnavailableError(
            f"{request.operation} of {place} at {self._home.host} failed {tries} times. Last failure: {reason}.",
            code="s3.unavailable",
            suggestion="Run again when it answers; s3.part.retries and s3.retry.backoff.ms limit the tries.",
        )

    def _tls_not_trusted(self, error: Exception) -> AccessError:
        return AccessError(
            f"No trusted TLS connection to {self._home.host}: {error}",
            code="s3.tls",
            config_path="store.url",
            suggestion="Set AWS_CA_BUNDLE to the authority's certificates, or correct store.url.",
        )


def _described(error: Exception) -> str:
    """Describe a broken connection; proxied connections name the cause themselves."""
    return str(error) if type(error) is http.client.HTTPException else f"{type(error).__name__}: {error}"


def _failure(request: S3Request, reply: HttpResponse, refusal: Refusal | None) -> str:
    """Why the request should be retried, or "" if the reply is final."""
    if refusal is not None:
        return str(refusal) if refusal.is_retriable else ""
    lacking = request.incomplete(reply)
    return f"{reply.status} and a reply {lacking} (is store.url an S3 server?)" if lacking else ""


def _host_header(scheme: str, netloc: str) -> str:
    """HTTP clients omit the default port in the Host header, and the signature must agree."""
    default = ":443" if scheme == "https" else ":80"
    return netloc.removesuffix(default)


def _proxy_of(settings: S3Settings) -> Proxy | None:
    """The configured proxy, else the environment's; its login may be configured in both cases."""
    if settings.proxy_url:
        url = settings.proxy_url if "://" in settings.proxy_url else f"https://{settings.proxy_url}"
        return Proxy(url, settings.proxy_user, settings.proxy_password)
    found = of_environment(settings.base_url)
    return replace(found, user=settings.proxy_user, password=settings.proxy_password) if found else None
