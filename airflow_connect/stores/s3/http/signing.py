"""AWS Signature Version 4 for S3 requests, header variant.

Source: AWS, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)". botocore needs about
ten times the CPU to sign the same request because it uses generic request objects; a test checks that the results are
equal.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """One consistent set of credentials. Its text form hides the secrets."""

    access_key_id: str
    secret_access_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        """Only the public part."""
        return f"Keys({self.access_key_id})"


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A request before signing.

    Attributes:
        host: value of the Host header.
        path: already percent-encoded path, `/` kept.
        query: sorted, percent-encoded `name=value` pairs joined by `&`, or "".
        headers: lower-case names; all of them are signed.
        payload_hash: lower-case hex SHA-256 of the body; the server rejects any other body.
    """

    method: str
    host: str
    path: str
    query: str
    headers: Mapping[str, str]
    payload_hash: str


def payload_hash(body: bytes | bytearray | memoryview) -> str:
    """The value of `Unsigned.payload_hash` for a body."""
    return hashlib.sha256(body).hexdigest() if body else _EMPTY_SHA256


def encode_path(key: str) -> str:
    """Percent-encode a key for a URL path: S3 keeps `/` and encodes once."""
    return quote(key, safe="/-_.~")


def encode_query(pairs: Sequence[tuple[str, str]]) -> str:
    """Canonical query string: encoded, then sorted by name."""
    encoded = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


class Signer:
    """Signs requests for one region; derived day keys are cached."""

    def __init__(self, region: str, service: str = "s3") -> None:
        """`region` as in `s3.region`."""
        self._region = region
        self._service = service
        self._derived: tuple[str, str, bytes] = ("", "", b"")

    def headers(self, request: Unsigned, keys: Keys, now: datetime | None = None) -> dict[str, str]:
        """All headers to send: those of the request and the ones that authenticate it.

        Args:
            request: what is sent.
            keys: who sends it.
            now: aware time of the signature; default: the clock.
        """
        stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        headers = {**request.headers, "host": request.host, "x-amz-date": stamp}
        headers["x-amz-content-sha256"] = request.payload_hash
        if keys.session_token:
            headers["x-amz-security-token"] = keys.session_token
        names = sorted(headers)
        signed = ";".join(names)
        lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names)
        canonical = "\n".join((request.method, request.path, request.query, lines, signed, request.payload_hash))
        day = stamp[:8]
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}"
        signature = hmac.digest(self._day_key(keys, day), text.encode(), "sha256").hex()
        credential = f"{keys.access_key_id}/{scope}"
        headers["authorization"] = f"{ALGORITHM} Credential={credential}, SignedHeaders={signed}, Signature={signature}"
        return headers

    def _day_key(self, keys: Keys, day: str) -> bytes:
        # One tuple, replaced as a whole: threads may compute it twice but never see a mix.
        cached_day, cached_secret, cached_key = self._derived
        if cached_day == day and cached_secret == keys.secret_access_key:
            return cached_key
        derived = b"AWS4" + keys.secret_access_key.encode()
        for part in (day, self._region, self._service, "aws4_request"):
            derived = hmac.digest(derived, part.encode(), "sha256")
        self._derived = (day, keys.secret_access_key, derived)
        return derived
