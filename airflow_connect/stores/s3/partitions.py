"""Amazon's partitions, their regions and DNS suffixes, and so S3's host names, read from botocore's data.

botocore itself is not imported: with its endpoint rules that takes 0.3 s in every Python process of Spark, and every
connector configuration is checked against this data. A test compares with botocore's own client in every region.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from airflow_connect.errors import ConfigError


class Partition(NamedTuple):
    """A separate part of AWS.

    Attributes:
        name: `aws`, `aws-cn`, ...
        dns_suffixes: what its host names end with, without the leading dot; the second is that of dual stack.
        regions: names of its regions, the pseudo-region of global services left out.
        region_pattern: pattern of its region names, including regions that this botocore does not know.
    """

    name: str
    dns_suffixes: tuple[str, ...]
    regions: frozenset[str]
    region_pattern: str


@cache
def partitions() -> tuple[Partition, ...]:
    """Every partition that the installed botocore knows; () when botocore or its data is missing."""
    spec = find_spec("botocore")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        file = Path(folder) / "data" / "partitions.json"
        if file.is_file():
            return tuple(_partition(found) for found in json.loads(file.read_text("utf-8"))["partitions"])
    return ()


def known_regions() -> tuple[str, ...]:
    """Names of all regions, sorted; () when botocore or its data is missing."""
    return tuple(sorted(region for partition in partitions() for region in partition.regions))


def partition_of_region(region: str) -> Partition:
    """The partition of a region; for an unknown region the standard one, as in botocore.

    Raises:
        ConfigError: botocore's data is missing.
    """
    found = partitions()
    if not found:
        raise ConfigError(
            "The data of botocore, which defines the host names of AWS regions, is missing.",
            code="s3.endpoint",
            config_path="store.url",
            suggestion="Install boto3 where the driver and the executors run, or set store.url.",
        )
    known = (each for each in found if region in each.regions)
    alike = (each for each in found if re.fullmatch(each.region_pattern, region))
    return next(known, None) or next(alike, found[0])


def partition_of_host(host: str) -> Partition | None:
    """The partition whose host names end as `host` does; None for a host that is not Amazon's.

    Partitions that share a suffix (`aws` and `aws-us-gov`) are distinguished by the region in the name.
    """
    sharing = [each for each in partitions() if any(host.endswith(f".{suffix}") for suffix in each.dns_suffixes)]
    labels = frozenset(host.split("."))
    return next((each for each in sharing if each.regions & labels), sharing[0] if sharing else None)


def _partition(found: dict[str, dict[str, str]]) -> Partition:
    outputs = found["outputs"]
    suffixes = (outputs["dnsSuffix"], outputs["dualStackDnsSuffix"])
    regions = frozenset(region for region in found["regions"] if not region.endswith("-global"))
    return Partition(str(found["id"]), suffixes, regions, str(found["regionRegex"]))
