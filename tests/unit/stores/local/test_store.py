"""The local store on a real file system: staging is invisible, publishing idempotent, nothing is ever replaced."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    DataError,
    PublishConflictError,
    UnavailableError,
)
from airflow_connect.stores.local import rename as local_rename
from airflow_connect.stores.local import staging as local_staging
from airflow_connect.stores.local.publish import LocalPublisher
from airflow_connect.stores.local.store import LocalStore, local_path
from airflow_connect.stores.store import FileIdentity, LeftOver, Outcome
from tests.support.processes.proc import descriptors_in

ROOT = "topics/"


def identity(name: str = "t+0+0000000000.bin", directory: str = "t/partition=0") -> FileIdentity:
    return FileIdentity(f"{ROOT}{directory}/{name}", "t", 0, 0, root=ROOT)


def stage(store: LocalStore, data: bytes = b"data", *identities: FileIdentity) -> list[StagedFile]:
    stager = store.stager("run-1")
    futures = []
    for one in identities or (identity(),):
        file = stager.open(one)
        file.write(data)
        futures.append(file.close(3, 3))
    stager.close()
    return [future.result() for future in futures]


def publisher(store: LocalStore, *, overwrite: bool = False) -> LocalPublisher:
    return store.publisher(probe_prefix=ROOT, overwrite=overwrite)


def publish(store: LocalStore, files: list[StagedFile], *, overwrite: bool = False) -> set[Outcome]:
    return set(publisher(store, overwrite=overwrite).publish(files, lambda _: None).values())


def visible(root: Path) -> dict[str, bytes]:
    """Every file outside of +tmp."""
    found = (path for path in root.rglob("*") if path.is_file() and "+tmp" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def everything(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def test_a_staged_file_is_invisible_until_it_is_published(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store, b"abc")
    assert visible(tmp_path) == {}
    assert (files[0].size_bytes, files[0].records, files[0].end) == (3, 3, 3)

    assert publish(store, files) == {Outcome.PUBLISHED}

    assert visible(tmp_path) == {identity().key: b"abc"}
    assert everything(tmp_path) == [identity().key]
    assert not (tmp_path / "topics" / "+tmp").exists()


def test_publishing_again_finds_what_is_there(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    publish(store, files)

    assert publish(store, files) == {Outcome.ALREADY_PUBLISHED}
    assert publish(store, files, overwrite=True) == {Outcome.ALREADY_PUBLISHED}
    assert visible(tmp_path) == {identity().key: b"data"}


def test_a_crash_between_link_and_unlink_is_already_published(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    final = tmp_path / identity().key
    final.parent.mkdir(parents=True)
    os.link(tmp_path / files[0].token["path"], final)

    assert publish(store, files) == {Outcome.ALREADY_PUBLISHED}
    assert everything(tmp_path) == [identity().key]


def test_an_equal_file_of_somebody_else_counts_as_published(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    (tmp_path / identity().key).parent.mkdir(parents=True)
    (tmp_path / identity().key).write_bytes(b"data")

    assert publish(store, files) == {Outcome.ALREADY_PUBLISHED}
    assert everything(tmp_path) == [identity().key]


def test_a_copy_from_a_backup_is_known_by_its_bytes(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    publish(store, files)
    final = tmp_path / identity().key
    final.unlink()
    final.write_bytes(b"data")

    assert publish(store, files) == {Outcome.ALREADY_PUBLISHED}

    final.write_bytes(b"tada")
    with pytest.raises(PublishConflictError):
        publish(store, files)


@pytest.mark.parametrize("other", [b"other", b"", b"tada"])
def test_another_file_under_the_name_is_a_conflict_that_names_both(
    store: LocalStore, tmp_path: Path, other: bytes
) -> None:
    files = stage(store)
    final = tmp_path / identity().key
    final.parent.mkdir(parents=True)
    final.write_bytes(other)

    with pytest.raises(PublishConflictError) as caught:
        publish(store, files)

    assert str(final) in caught.value.message
    assert files[0].token["path"] in caught.value.message
    assert final.read_bytes() == other
    final.unlink()
    assert publish(store, files) == {Outcome.PUBLISHED}  # As the suggestion says.


def test_a_directory_under_the_name_is_a_conflict(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    (tmp_path / identity().key).mkdir(parents=True)

    with pytest.raises(PublishConflictError):
        publish(store, files)


def test_a_conflict_does_not_keep_the_other_files_from_being_published(store: LocalStore, tmp_path: Path) -> None:
    names = [identity(f"t+0+{n}.bin") for n in range(5)]
    files = stage(store, b"data", *names)
    (tmp_path / names[2].key).parent.mkdir(parents=True)
    (tmp_path / names[2].key).write_bytes(b"x")
    (tmp_path / names[3].key).write_bytes(b"x")

    with pytest.raises(PublishConflictError, match="2 names belong to other files"):
        publish(store, files)

    assert [visible(tmp_path)[name.key] for name in names] == [b"data", b"data", b"x", b"x", b"data"]


def test_overwrite_replaces(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    final = tmp_path / identity().key
    final.parent.mkdir(parents=True)
    final.write_bytes(b"other")

    assert publish(store, files, overwrite=True) == {Outcome.PUBLISHED}
    assert visible(tmp_path) == {identity().key: b"data"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_deleted_temporary_file_is_lost(store: LocalStore, tmp_path: Path, overwrite: bool) -> None:
    files = stage(store)
    (tmp_path / files[0].token["path"]).unlink()

    assert publish(store, files, overwrite=overwrite) == {Outcome.LOST}
    assert visible(tmp_path) == {}


def test_a_file_that_is_lost_twice_was_staged_elsewhere(store: LocalStore, tmp_path: Path) -> None:
    driver = LocalStore(str(tmp_path / "driver"))
    publishing = publisher(driver)
    publishing.preflight()
    assert publishing.publish(stage(store), lambda _: None) == {identity().key: Outcome.LOST}

    with pytest.raises(AccessError, match="was staged twice by") as caught:
        publishing.publish(stage(store), lambda _: None)

    assert caught.value.code == "local.not_shared"
    assert "local[*]" in caught.value.suggestion


def test_an_executor_without_the_directory_says_so_and_makes_none(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"

    with pytest.raises(AccessError, match="does not exist on") as caught:
        stage(LocalStore(str(missing)))

    assert caught.value.code == "local.not_shared"
    assert not missing.exists()


def test_two_publishers_at_once_publish_everything_once(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store, b"data", *(identity(f"t+0+{n}.bin") for n in range(200)))
    start = threading.Barrier(4)

    def work(_: int) -> list[Outcome]:
        start.wait()
        return list(publisher(store).publish(files, lambda _: None).values())

    with ThreadPoolExecutor(4) as pool:
        found = [outcome for outcomes in pool.map(work, range(4)) for outcome in outcomes]

    assert found.count(Outcome.PUBLISHED) == 200
    assert found.count(Outcome.ALREADY_PUBLISHED) == 600
    assert len(visible(tmp_path)) == 200 == len(everything(tmp_path))


def test_two_files_of_one_name_are_refused(store: LocalStore) -> None:
    with pytest.raises(PublishConflictError, match="Two staged files"):
        publish(store, [*stage(store), *stage(store)])


@pytest.mark.parametrize("fails", ["link", "link and renameat2"])
def test_without_hard_links_files_are_renamed_without_replacing(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    files = stage(store)
    if fails != "link":
        monkeypatch.setattr(local_rename, "_libc_renameat2", lambda: None)
        with pytest.raises(ConnectError, match="no hard links"):
            publish(store, files)
        return

    assert publish(store, files) == {Outcome.PUBLISHED}
    assert publish(store, files) == {Outcome.ALREADY_PUBLISHED}
    (tmp_path / identity().key).write_bytes(b"other")
    with pytest.raises(PublishConflictError):
        publish(store, stage(store))
    assert visible(tmp_path) == {identity().key: b"other"}


def test_abort_removes_files_and_empty_directories_and_says_how_many(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store, b"data", identity(), identity("t+0+7.bin", "t/partition=1"))

    assert publisher(store).abort([files[0], LeftOver(files[1].key, files[1].token)]) == 2
    assert publisher(store).abort(files) == 0
    assert not (tmp_path / "topics" / "+tmp").exists()


def test_abort_leaves_what_is_published(store: LocalStore, tmp_path: Path) -> None:
    files = stage(store)
    publish(store, files)

    assert publisher(store).abort(files) == 0
    assert visible(tmp_path) == {identity().key: b"data"}


def test_an_aborted_file_leaves_nothing(store: LocalStore, tmp_path: Path) -> None:
    stager = store.stager("run-1")
    file = stager.open(identity())
    file.write(b"x")
    file.spill()
    assert len(everything(tmp_path)) == 1
    file.abort()
    file.abort()
    stager.close()
    assert everything(tmp_path) == []
    with pytest.raises(ValueError, match="is closed"):
        file.write(b"x")


def test_list_staged_finds_files_by_prefix_and_never_published_ones(store: LocalStore, tmp_path: Path) -> None:
    here, there = identity(), identity("u+0+0.bin", "u/partition=0")
    files = stage(store, b"data", here, there)
    publish(store, stage(store, b"data", identity("t+0+9.bin")))
    (tmp_path / "topics/+tmp/t/partition=0/somebody.else").write_bytes(b"x")
    listing = publisher(store)

    assert [found.key for found in listing.list_staged(["topics/t/"])] == [here.key]
    assert sorted(f.key for f in listing.list_staged(["topics/", "topics/t/"])) == [here.key, there.key]
    assert list(listing.list_staged(["topics/x/", "elsewhere/"])) == []
    found = next(iter(listing.list_staged(["topics/t/"])))
    assert found.token["path"] == files[0].token["path"]
    assert abs(found.started_ms - os.stat(tmp_path / found.token["path"]).st_mtime * 1000) < 2


def test_bytes_in_many_pieces_arrive_in_order(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_staging, "PIECE_BYTES", 1000)
    stager = store.stager("run-1")
    file = stager.open(identity())
    data = os.urandom(10_000)
    for start in range(0, len(data), 333):
        file.write(memoryview(data)[start : start + 333])
        if start % 999 == 0:
            file.spill()
            assert file.buffered_bytes == 0
    future = file.close(1, 1)
    stager.close()

    publish(store, [future.result()])

    assert visible(tmp_path) == {identity().key: data}


def test_a_thousand_open_files_hold_no_descriptor(store: LocalStore, tmp_path: Path) -> None:
    stager = store.stager("run-1")
    files = [stager.open(identity(f"t+0+{n}.bin", f"t/f={n}")) for n in range(1000)]
    for file in files:
        file.write(b"x" * 100)
        file.spill()
        file.write(b"y")
    assert descriptors_in(tmp_path) <= 1
    futures = [file.close(1, 1) for file in files]
    stager.close()

    assert publish(store, [future.result() for future in futures]) == {Outcome.PUBLISHED}
    assert len(visible(tmp_path)) == 1000


def test_an_empty_file_is_staged_and_published(store: LocalStore, tmp_path: Path) -> None:
    assert publish(store, stage(store, b"")) == {Outcome.PUBLISHED}
    assert visible(tmp_path) == {identity().key: b""}


def test_a_name_with_its_end_is_known_when_the_file_is_closed(store: LocalStore, tmp_path: Path) -> None:
    ended = FileIdentity("topics/t/t+0+0.bin", "t", 0, 0, root=ROOT, key_at=lambda end: f"topics/t/t+0+0+{end - 1}.bin")
    file = stage(store, b"data", ended)[0]

    assert file.key == "topics/t/t+0+0+2.bin"
    assert [found.key for found in publisher(store).list_staged([ROOT])] == ["topics/t/t+0+0.bin"]
    publish(store, [file])
    assert visible(tmp_path) == {"topics/t/t+0+0+2.bin": b"data"}


def test_a_file_that_is_deleted_while_it_grows_fails_the_task(store: LocalStore, tmp_path: Path) -> None:
    file = store.stager("run-1").open(identity())
    file.write(b"x")
    file.spill()
    os.unlink(tmp_path / everything(tmp_path)[0])
    file.write(b"y")

    with pytest.raises(UnavailableError, match="disappeared before it was complete"):
        file.close(1, 1)


def test_a_file_that_is_deleted_before_it_is_synced_fails_the_task(store: LocalStore, tmp_path: Path) -> None:
    stager = store.stager("run-1")
    file = stager.open(identity())
    file.write(b"x")
    file.spill()
    os.unlink(tmp_path / everything(tmp_path)[0])

    with pytest.raises(UnavailableError, match="disappeared before it was synced to disk") as caught:
        file.close(1, 1).result()

    assert caught.value.code == "local.staged_file_gone"
    stager.close()


def test_a_file_that_somebody_else_writes_to_fails_the_audit(store: LocalStore, tmp_path: Path) -> None:
    stager = store.stager("run-1")
    file = stager.open(identity())
    file.write(b"x")
    file.spill()
    with open(tmp_path / everything(tmp_path)[0], "ab") as other:
        other.write(b"stranger")

    with pytest.raises(ConnectError, match="was written as 1 bytes, but holds 9"):
        file.close(1, 1).result()


@pytest.mark.parametrize(
    "bad", [identity("x" * 240 + ".bin"), identity(directory="y" * 256), identity("ü" * 120 + ".b")]
)
def test_a_name_that_is_too_long_is_an_error_of_the_record(store: LocalStore, bad: FileIdentity) -> None:
    with pytest.raises(DataError) as caught:
        store.stager("run-1").open(bad)

    assert caught.value.code == "data.key_too_long"


def test_mark_makes_empty_files_once(store: LocalStore, tmp_path: Path) -> None:
    marking = publisher(store)
    marking.mark(["topics/t/a/_SUCCESS", "topics/t/b/_SUCCESS"])
    marking.mark(["topics/t/a/_SUCCESS"])

    assert visible(tmp_path) == {"topics/t/a/_SUCCESS": b"", "topics/t/b/_SUCCESS": b""}


def test_preflight_makes_the_directory_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    publisher(LocalStore(f"file://{tmp_path}/a/b")).preflight()

    assert (tmp_path / "a" / "b").is_dir()
    assert everything(tmp_path) == []
    assert not (tmp_path / "a/b/topics/+tmp").exists()


def test_preflight_over_a_file_says_that_it_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")

    with pytest.raises(AccessError) as caught:
        publisher(LocalStore(f"{tmp_path}/a/b")).preflight()

    assert caught.value.code == "local.not_a_directory"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("file:///data/out", "/data/out"),
        ("file:/data/out/", "/data/out"),
        ("FILE://localhost/data/a%20b", "/data/a b"),
        ("/data//x/../out", "/data/out"),
        ("//data", "/data"),
    ],
)
def test_addresses_that_mean_a_directory(given: str, path: str) -> None:
    assert local_path(given) == path
    assert LocalStore(given).name == f"file://{path}"


@pytest.mark.parametrize("given", ["data/out", "file:data", "file://host/data", "s3://bucket", "", "file:///a%00b"])
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="is not a directory on this machine"):
        LocalStore(given)
