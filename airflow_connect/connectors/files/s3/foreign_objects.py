"""Objects that another program left where a run takes over from it (`behavior.on.foreign.objects`).

A Kafka Connect worker that is killed leaves objects whose offsets it has not committed. A run begins at the committed
offset, so its first object in each directory has the name of one of them. The names of later objects match only if
files end at the same records. Otherwise (another `flush.size`, rotation by the clock) the foreign objects stay next to
ours and hold the same records. Nothing here deletes them, because their names do not tell where they end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, cast

from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PublishedRun
from airflow_connect.layout.names.object_names import NameSettings, directory_key
from airflow_connect.stores.store import FilePublisher

_SHOWN = 5
_THREADS = 16


class _Listing(Protocol):
    """A method that the S3 publisher has in addition to `FilePublisher`."""

    replaced: list[str]
    replaces_foreign: bool

    def keys_below(self, prefix: str) -> list[str]:
        """Keys of all objects whose keys begin with `prefix`."""


class ForeignObjects:
    """A step after publishing: reports replaced objects, and foreign objects that hold published records."""

    def __init__(self, names: NameSettings) -> None:
        """`names`: the grammar of keys."""
        self._names = names

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> tuple[str, ...]:
        """Return notes for the report; nothing is changed.

        Raises:
            AccessError, UnavailableError: the bucket could not be listed.
        """
        listing = cast(_Listing, publisher)
        # Not the configuration of the recovered run: it may have failed because it did not replace.
        if not listing.replaces_foreign:
            return ()
        notes = []
        if listing.replaced:
            notes.append(
                f"Objects of another program were replaced (behavior.on.foreign.objects=replace): "
                f"{_shown(listing.replaced)}."
            )
        if overlapping := self._overlapping(run.files, listing):
            notes.append(
                "Objects of another program begin at offsets that published objects also hold: "
                f"{_shown(overlapping)}. Their records are in the bucket twice once all following records are copied; "
                "then delete these objects."
            )
        return tuple(notes)

    def _overlapping(self, files: Iterable[StagedFile], listing: _Listing) -> list[str]:
        """Keys of objects that are not in `files` but, by their names, begin inside one of them."""
        beside: dict[str, list[StagedFile]] = defaultdict(list)
        for file in files:
            beside[self._before_start(file)].append(file)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="foreign") as pool:
            listed = pool.map(listing.keys_below, beside)
            return sorted(
                key
                for (prefix, ours), keys in zip(beside.items(), listed, strict=True)
                for key in set(keys) - {file.key for file in ours}
                if _starts_within(key.removeprefix(prefix), ours)
            )

    def _before_start(self, file: StagedFile) -> str:
        """The common prefix of all keys in this file's directory and partition, up to the offset."""
        directory = directory_key(file.key, file.topic, file.partition, file.start, self._names)
        fd = self._names.file_delimiter
        return f"{directory}{self._names.directory_delimiter}{file.topic}{fd}{file.partition}{fd}"


def _starts_within(rest: str, files: Iterable[StagedFile]) -> bool:
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return digits != "" and any(file.start <= int(digits) < file.end for file in files)


def _shown(keys: list[str]) -> str:
    """The number of keys, and some of them."""
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"({len(keys)}) {', '.join(sorted(keys)[:_SHOWN])}{more}"
