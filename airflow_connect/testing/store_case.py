"""What the conformance suite of stores works with: the files that it stages, and what a subclass says of its store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.api.errors import PublishConflictError
from airflow_connect.api.run import StagedFile
from airflow_connect.stores.store import FileIdentity, FilePublisher, Outcome, Stager, StagingFile, Store

ROOT = "topics/"
DIRECTORY = f"{ROOT}t/day=2026-11-22/"
WAIT_S = 120.0
VISIBLE = {Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED}


def identity(start: int, directory: str = DIRECTORY) -> FileIdentity:
    """The file of partition 0 that begins at offset `start`."""
    return FileIdentity(f"{directory}t+0+{start:010}.json", "t", 0, start, "application/json", root=ROOT)


class StoreCase:
    """The store under test, as its subclass describes it.

    Attributes:
        many_files: how many small files one task stages at once.
        large_bytes: size of a file that does not fit into what the store keeps in memory.
        names_hold_end: whether the final name may be chosen when a file is closed (`FileIdentity.key_at`).
        compares_content: whether equal bytes that a stranger wrote count as published; else they are a conflict.
    """

    many_files: ClassVar[int] = 200
    large_bytes: ClassVar[int] = 24 << 20
    names_hold_end: ClassVar[bool] = True
    compares_content: ClassVar[bool] = True

    def open_store(self, target: Any) -> Store:
        """The store on `target`, with its default settings; it must survive pickling."""
        raise NotImplementedError

    def visible(self, target: Any) -> Mapping[str, bytes]:
        """Everything that a reader of the store can see: key -> content. Nothing staged is among it."""
        raise NotImplementedError

    def put_foreign(self, target: Any, key: str, data: bytes) -> None:
        """Write a file as a stranger would, replacing what is there."""
        raise NotImplementedError

    def unusable_stores(self, target: Any) -> Iterable[Store]:
        """Stores that `preflight` must refuse: a wrong address, a missing permission; as many as you can make."""
        return ()

    @pytest.fixture
    def target(self, tmp_path: Path) -> Any:
        """An empty place for one test; override it for a bucket, a directory of a server."""
        return tmp_path

    @pytest.fixture
    def store(self, target: Any) -> Store:
        """The store under test."""
        return self.open_store(target)

    @pytest.fixture
    def stager(self, store: Store) -> Iterator[Stager]:
        """What a task has."""
        stager = store.stager("run-1")
        yield stager
        stager.close()

    @pytest.fixture
    def publisher(self, store: Store) -> Iterator[FilePublisher]:
        """What the driver has."""
        publisher = store.publisher(probe_prefix=ROOT, overwrite=False)
        yield publisher
        publisher.close()


def stage(stager: Stager, contents: Mapping[int, bytes]) -> list[StagedFile]:
    """Stage a file of one record for each start offset."""
    futures = []
    for start, data in contents.items():
        file: StagingFile = stager.open(identity(start))
        file.write(data)
        futures.append(file.close(start + 1, 1))
    return [future.result(WAIT_S) for future in futures]


def publish(publisher: FilePublisher, files: Sequence[StagedFile]) -> dict[str, Outcome]:
    """Publish, whatever the progress."""
    ignore: Callable[[int], None] = lambda _: None  # noqa: E731
    return publisher.publish(files, ignore)


def publish_one(publisher: FilePublisher, file: StagedFile) -> Outcome:
    """What came of one file; a rival that stands there is its own content here, and counts as published by it."""
    try:
        return publish(publisher, [file])[file.key]
    except PublishConflictError:
        return Outcome.LOST
