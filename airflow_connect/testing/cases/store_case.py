"""The basis of the conformance suite of stores: the files that it stages, and what a subclass defines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import PublishConflictError
from airflow_connect.stores.store import FileIdentity, FilePublisher, Outcome, Stager, StagingFile, Store

ROOT = "topics/"
DIRECTORY = f"{ROOT}t/day=2026-11-22/"
WAIT_S = 120.0
VISIBLE = {Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED}


def identity(start: int, directory: str = DIRECTORY) -> FileIdentity:
    """The file of partition 0 that starts at offset `start`."""
    return FileIdentity(f"{directory}t+0+{start:010}.json", "t", 0, start, "application/json", root=ROOT)


class StoreCase:
    """The store under test, as its subclass describes it.

    Attributes:
        many_files: number of small files that one task stages at once.
        large_bytes: size of a file that exceeds the store's memory buffers.
        names_hold_end: whether the final name may be chosen when a file is closed (`FileIdentity.key_at`).
        compares_content: whether a foreign file with equal bytes counts as published; otherwise it is a conflict.
    """

    many_files: ClassVar[int] = 200
    large_bytes: ClassVar[int] = 24 << 20
    names_hold_end: ClassVar[bool] = True
    compares_content: ClassVar[bool] = True

    def open_store(self, target: Any) -> Store:
        """The store on `target`, with its default settings; it must survive pickling."""
        raise NotImplementedError

    def visible(self, target: Any) -> Mapping[str, bytes]:
        """Everything that is visible to a reader of the store: key -> content. Staged files are not included."""
        raise NotImplementedError

    def put_foreign(self, target: Any, key: str, data: bytes) -> None:
        """Write a foreign file, replacing what is there."""
        raise NotImplementedError

    def unusable_stores(self, target: Any) -> Iterable[Store]:
        """Stores that `preflight` must refuse: a wrong address, a missing permission; as many as you can create."""
        return ()

    @pytest.fixture
    def target(self, tmp_path: Path) -> Any:
        """An empty directory for one test; override it for a bucket or a directory of a server."""
        return tmp_path

    @pytest.fixture
    def store(self, target: Any) -> Store:
        """The store under test."""
        return self.open_store(target)

    @pytest.fixture
    def stager(self, store: Store) -> Iterator[Stager]:
        """The stager of a task."""
        stager = store.stager("run-1")
        yield stager
        stager.close()

    @pytest.fixture
    def publisher(self, store: Store) -> Iterator[FilePublisher]:
        """The publisher of the driver."""
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
    """Publish, ignoring progress."""
    ignore: Callable[[int], None] = lambda _: None  # noqa: E731
    return publisher.publish(files, ignore)


def publish_one(publisher: FilePublisher, file: StagedFile) -> Outcome:
    """The outcome of one file. On a conflict with a competing file of other content: LOST."""
    try:
        return publish(publisher, [file])[file.key]
    except PublishConflictError:
        return Outcome.LOST
