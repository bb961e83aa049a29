"""What another program left in the directories of a run that takes over from it (`behavior.on.foreign.objects`).

A Kafka Connect worker that is killed leaves objects whose offsets it has not committed. A run begins at the committed
offset, so its first object in each directory has the name of one of them. The others have names of ours only where
files end at the same records; where they do not (another `flush.size`, rotation by the clock), they stay beside ours
and hold the same records. Nothing deletes them here: their names do not tell where they end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, cast

from airflow_connect.api.run import PublishedRun, StagedFile
from airflow_connect.layout.object_names import NameSettings, directory_key
from airflow_connect.stores.store import FilePublisher

_SHOWN = 5
_THREADS = 16


class _Listing(Protocol):
    """What the S3 publisher offers beyond `FilePublisher`."""

    replaced: list[str]
    replaces_foreign: bool

    def keys_below(self, prefix: str) -> list[str]:
        """Keys of all objects whose keys begin with `prefix`."""


class ForeignObjects:
    """A step after publishing: tells what was replaced, and which objects of another program hold published records."""

    def __init__(self, names: NameSettings) -> None:
        """`names`: the grammar of keys."""
        self._names = names

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> tuple[str, ...]:
        """Notes for the report; nothing is changed.

        Raises:
            AccessError, UnavailableError: the bucket could not be listed.
        """
        listing = cast(_Listing, publisher)
        # Not the configuration of a run that is recovered: it may have failed because it did not replace.
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
                "Objects of another program begin at offsets that the published ones hold, too: "
                f"{_shown(overlapping)}. Their records are in the bucket twice as soon as all that follow are copied; "
                "delete these objects then."
            )
        return tuple(notes)

    def _overlapping(self, files: Iterable[StagedFile], listing: _Listing) -> list[str]:
        """Keys of objects that are none of `files` and begin inside one of them, by their names."""
        beside: dict[str, list[StagedFile]] = defaultdict(list)
        for file in files:
            beside[self._before_start(file)].append(file)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="foreign") as pool:
            listed = pool.map(listing.keys_below, beside)
            return sorted(
                key
                for (prefix, ours), keys in zip(beside.items(), listed, strict=True)
                for key in set(keys) - {file.key for file in ours}
                if _begins_inside(key.removeprefix(prefix), ours)
            )

    def _before_start(self, file: StagedFile) -> str:
        """What all keys of this file's directory and partition begin with, before the offset."""
        directory = directory_key(file.key, file.topic, file.partition, file.start, self._names)
        fd = self._names.file_delimiter
        return f"{directory}{self._names.directory_delimiter}{file.topic}{fd}{file.partition}{fd}"


def _begins_inside(rest: str, files: Iterable[StagedFile]) -> bool:
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return digits != "" and any(file.start <= int(digits) < file.end for file in files)


def _shown(keys: list[str]) -> str:
    """Some of the keys, and how many there are."""
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"({len(keys)}) {', '.join(sorted(keys)[:_SHOWN])}{more}"
