"""Which redirects a signed request may follow: only Amazon's own, within the partition of the configured endpoint.

A redirect determines who receives the next signature, a session token and the data. Amazon redirects requests for a new
bucket (307) to hosts below the DNS suffix of its partition, such as `bucket.s3-gztb4pa9sq.amazonaws.com`. Source:
Amazon S3 User Guide, "Making requests using DNS redirection" (Redirects.html).
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from airflow_connect.stores.s3.partitions import Partition, partition_of_host

FOLLOWED_STATUS = 307
STATUSES = frozenset({301, 302, 303, 307, 308})

# Names directly below the suffix, or before a region. Customers' load balancers and machines also get host names below
# the suffix, and customers can choose how they begin.
_FACILITY = re.compile(r"s3-[a-z0-9-]+")
_BEFORE_REGION = re.compile(r"s3(-fips)?(\.dualstack)?\.(?P<region>[a-z0-9-]+)")


class Address(NamedTuple):
    """Where requests go: scheme, value of the Host header, and the path of the bucket (`/bucket`, or "")."""

    scheme: str
    host: str
    base_path: str


def redirected(home: Address, bucket: str, location: str) -> Address | None:
    """The next address of a request that was sent to `home`, or None if the redirect must not be followed.

    Args:
        home: the configured address.
        bucket: name of the bucket.
        location: the reply's `Location`.
    """
    partition = partition_of_host(home.host)
    parts = _split(location)
    if partition is None or parts is None:
        return None
    scheme, host = parts
    if scheme != home.scheme or host == home.host:
        return None
    names_bucket = host.startswith(f"{bucket}.")
    service = host.removeprefix(f"{bucket}.")
    if not _is_amazons(service, partition):
        return None
    return Address(scheme, host, "" if names_bucket else f"/{bucket}")


def shown(location: str) -> str:
    """Scheme and host of a `Location` for messages: the rest may contain secrets."""
    parts = _split(location)
    return f"{parts[0]}://{parts[1]}" if parts else "an address that cannot be read"


def _split(location: str) -> tuple[str, str] | None:
    """Scheme and host, with the port if there is one; None if there is no host, or a user."""
    try:
        parts = urlsplit(location)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, f"{parts.hostname}{port}"


def _is_amazons(service: str, partition: Partition) -> bool:
    for suffix in partition.dns_suffixes:
        left = service.removesuffix(f".{suffix}")
        if left == service:
            continue
        if left == "s3" or _FACILITY.fullmatch(left):
            return True
        found = _BEFORE_REGION.fullmatch(left)
        return found is not None and found["region"] in partition.regions
    return False
