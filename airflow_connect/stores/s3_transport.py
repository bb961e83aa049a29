"""Signed HTTP requests to one bucket.

Connection pool, retries, redirects. Knows nothing of multipart uploads.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from airflow_connect.api.errors import AccessError, UnavailableError
from airflow_connect.stores.s3_connections import Connections, DirectConnections, Target, tls_context
from airflow_connect.stores.s3_credentials import KeySource, key_source
from airflow_connect.stores.s3_errors import Attempted, Refusal, Reply, read_refusal
from airflow_connect.stores.s3_redirects import FOLLOWED_STATUS, Address, redirected
from airflow_connect.stores.s3_retry import RetryPolicy
from airflow_connect.stores.s3_settings import S3Settings
from airflow_connect.stores.s3_signing import (
    Signer,
    Unsigned,
    encode_path,
    encode_query,
    payload_hash,
)

USER_AGENT = "airflow-connect"
Body = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class S3Request:
    """One request on the bucket or on a key of it.

    Attributes:
        operation: S3's name of it, for messages.
        permissions: IAM actions that it needs, for messages.
        headers: lower-case names.
        incomplete: says what a successful reply lacks, or ""; one that was cut off is asked for again.
    """

    operation: str
    method: str
    permissions: tuple[str, ...]
    key: str = ""
    query: Sequence[tuple[str, str]] = ()
    headers: dict[str, str] = field(default_factory=dict)
    body: Body = b""
    incomplete: Callable[[Reply], str] = field(default=lambda _: "")


class S3Transport:
    """Sends requests and returns complete replies; one per process and bucket, used by many threads."""

    def __init__(
        self,
        settings: S3Settings,
        keys: KeySource | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is sent and no credentials are fetched before the first request.

        Args:
            settings: bucket, address, credentials, retries.
            keys: credentials; default: those of `settings`.
            sleep: waits between tries, in seconds.
        """
        self.settings = settings
        self.retry = RetryPolicy(settings.part_retries, settings.retry_backoff_ms)
        self._keys = keys
        self._sleep = sleep
        self._signer = Signer(settings.region)
        base = urlsplit(settings.base_url)
        self._home = Address(base.scheme, _host_header(base.scheme, base.netloc), base.path)
        self._tls = tls_context() if base.scheme == "https" else None
        self._connections: dict[str, Connections] = {}
        self.repeated: set[str] = set()
        """Operations of which a request was sent again: the server may have carried it out twice."""

    def attempted(self, request: S3Request) -> Attempted:
        """`request` for messages."""
        return Attempted(
            request.operation, self.settings.bucket, request.key, request.permissions, self.settings.region
        )

    def send(self, request: S3Request, policy: RetryPolicy | None = None) -> tuple[Reply, Refusal | None]:
        """Send until there is an answer that another try would not change.

        Args:
            request: what to send; must be repeatable.
            policy: default: `s3.part.retries` and `s3.retry.backoff.ms`.

        Returns:
            the reply, and the error in it that is final, or None.

        Raises:
            UnavailableError: no final answer after all tries; names operation, key and the last failure.
            AccessError: no credentials, or the server's certificate is not trusted.
        """
        pauses = (policy or self.retry).pauses_s()
        address, tries = self._home, 0
        refusal: Refusal | None
        while True:
            tries += 1
            try:
                reply = self._once(request, address)
            except ssl.SSLCertVerificationError as error:
                raise self._untrusted(error) from error
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
            pause = next(pauses, None)
            if pause is None:
                raise self._gave_up(request, failure, tries, is_damaged=refusal is not None and refusal.is_damage)
            self.repeated.add(request.operation)
            self._sleep(pause)

    def wait(self, seconds: float) -> None:
        """Pause before another try; a parameter of the transport so that tests need not wait."""
        self._sleep(seconds)

    def close(self) -> None:
        """Close idle connections."""
        for connections in self._connections.values():
            connections.close()

    def _once(self, request: S3Request, address: Address) -> Reply:
        if self._keys is None:
            self._keys = key_source(self.settings)
        base_path, host = address.base_path, address.host
        path = f"{base_path}/{encode_path(request.key)}" if request.key else base_path or "/"
        query = encode_query(request.query)
        # Over TLS, too: TLS ends at proxies and load balancers, and says nothing of what happens behind them.
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
        if proxy := _proxy_url(given):
            from airflow_connect.stores.s3_proxied import ProxiedConnections, Proxy

            made = ProxiedConnections(target, Proxy(proxy, given.proxy_user, given.proxy_password), most_idle)
        else:
            made = DirectConnections(target, most_idle)
        # Two threads may get here at once; one pool wins, the other is dropped unused.
        return self._connections.setdefault(host, made)

    def _moved_to(self, reply: Reply) -> Address | None:
        """Where Amazon sends requests for a bucket just made; one such step is taken for each request."""
        if reply.status != FOLLOWED_STATUS:
            return None
        return redirected(self._home, self.settings.bucket, reply.headers.get("location", ""))

    def _gave_up(self, request: S3Request, failure: str, tries: int, *, is_damaged: bool) -> UnavailableError:
        place, reason = self.attempted(request).place, failure.rstrip(".")
        if is_damaged:
            return UnavailableError(
                f"{request.operation} of {place} failed {tries} times, because other bytes arrived at "
                f"{self._home.host} than were sent: {reason}.",
                code="s3.damaged",
                suggestion="Nothing damaged was kept. Look for what changes data on its way: a proxy, a load balancer, "
                "a network card or memory.",
            )
        return UnavailableError(
            f"{request.operation} of {place} failed {tries} times, at last with {reason}, at {self._home.host}.",
            code="s3.unavailable",
            suggestion="Run again when it answers; s3.part.retries and s3.retry.backoff.ms bound the tries.",
        )

    def _untrusted(self, error: Exception) -> AccessError:
        return AccessError(
            f"No trusted TLS connection to {self._home.host}: {error}",
            code="s3.tls",
            config_path="store.url",
            suggestion="Name the authority's certificates in AWS_CA_BUNDLE, or correct store.url.",
        )


def _described(error: Exception) -> str:
    """A broken connection in words; the proxied kind names its cause itself."""
    return str(error) if type(error) is http.client.HTTPException else f"{type(error).__name__}: {error}"


def _failure(request: S3Request, reply: Reply, refusal: Refusal | None) -> str:
    """Why the request should be repeated, or "" when the reply is final."""
    if refusal is not None:
        return str(refusal) if refusal.is_retriable else ""
    lacking = request.incomplete(reply)
    return f"{reply.status} and a reply {lacking} (is store.url an S3 server?)" if lacking else ""


def _host_header(scheme: str, netloc: str) -> str:
    """HTTP clients leave the default port out of the Host header, and the signature must agree."""
    default = ":443" if scheme == "https" else ":80"
    return netloc.removesuffix(default)


def _proxy_url(settings: S3Settings) -> str:
    """The configured proxy, else the environment's unless it exempts the host."""
    if settings.proxy_url:
        return settings.proxy_url if "://" in settings.proxy_url else f"https://{settings.proxy_url}"
    base = urlsplit(settings.base_url)
    if proxy_bypass(base.hostname or ""):
        return ""
    proxy = getproxies().get(base.scheme, "")
    # In the environment `host:port` is common, and means what curl means by it.
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"
