"""Names of temporary files: keys come back from them, and no listing of them meets a published file."""

from __future__ import annotations

import pytest

from airflow_connect.errors import DataError
from airflow_connect.stores.staged_names import (
    probe_paths,
    remove_emptied,
    staged_below,
    staged_path,
    staged_places,
    temporary_directories,
)
from airflow_connect.stores.store import PROBE_NAME, FileIdentity

KEYS = (
    ("topics/", "topics/t/partition=0/t+0+0000000000.avro"),
    ("topics/", "topics/t/f=a%2Fb/ü=x y/t+0+0.snappy.parquet"),
    ("", "t/partition=0/t+0+0000000000.keys.json"),
    ("a/b/", "a/b/t.x/year=2026/month=01/t.x+12+99.bin"),
    ("topics/", "topics/.airflow-connect-preflight-1234abcd"),
    ("topics_", "topics_t_partition=0_t+0+0000000000.avro"),
    ("a/topics_", "a/topics_t_partition=0_t+0+0000000000.avro"),
)


@pytest.mark.parametrize(("root", "key"), KEYS)
@pytest.mark.parametrize("cut", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_a_staged_file_is_found_by_every_prefix_of_its_key_that_reaches_its_root(
    root: str, key: str, cut: float
) -> None:
    path = staged_path(FileIdentity(key, "t", 0, 0, root=root))
    prefix = key[: max(len(root), int(len(key) * cut))]

    found = {place.key_of(path) for place in staged_places(prefix) if path.startswith(place.directory)}

    assert found == {key}


def test_two_attempts_of_one_file_have_two_paths() -> None:
    identity = FileIdentity("topics/t/p/t+0+0.avro", "t", 0, 0, root="topics/")

    assert len({staged_path(identity) for _ in range(100)}) == 100


def test_the_path_lies_beside_the_topics_under_the_root() -> None:
    path = staged_path(FileIdentity("topics/t/p/t+0+0.avro", "t", 0, 0, root="topics/"))

    assert path.startswith("topics/+tmp/t/p/t+0+0.avro.")
    assert path.endswith("_tmp")


def test_places_of_a_prefix_are_its_ancestors() -> None:
    assert [p.directory for p in staged_places("topics/t/")] == ["+tmp/topics/t/", "topics/+tmp/t/", "topics/t/+tmp/"]
    assert [p.directory for p in staged_places("to")] == ["+tmp/"]


@pytest.mark.parametrize(
    "name", ["t+0+0.avro", "t+0+0.avro.0123456789abcde_tmp", "t+0+0.avro.0123456789ABCDEF_tmp", "x"]
)
def test_a_file_of_somebody_else_in_the_temporary_directory_has_no_key(name: str) -> None:
    place = next(p for p in staged_places("topics/t/") if p.above == "topics/")

    assert place.key_of(f"topics/+tmp/t/{name}") is None
    assert place.key_of("topics/t/p/t+0+0.avro.0123456789abcdef_tmp") is None


@pytest.mark.parametrize("key", ["topics/../x", "topics/t/./x", "topics//x", "/topics/x", "topics/t/", "a\0b"])
def test_a_key_that_means_another_place_is_refused(key: str) -> None:
    with pytest.raises(DataError, match="would interpret as another path"):
        staged_path(FileIdentity(key, "t", 0, 0, root="topics/"))


def test_directories_of_a_temporary_file_end_with_the_temporary_one() -> None:
    assert list(temporary_directories("topics/+tmp/t/p/name")) == ["topics/+tmp/t/p", "topics/+tmp/t", "topics/+tmp"]
    assert list(temporary_directories("+tmp/name")) == ["+tmp"]


def test_listing_below_prefixes_names_each_file_once_and_no_stranger() -> None:
    staged = staged_path(FileIdentity("topics/t/p=1/f0", "t", 0, 0, root="topics/"))
    asked: list[str] = []

    def walk(directory: str) -> list[tuple[str, int]]:
        asked.append(directory)
        return [(f"{directory}/note.txt", 1), (staged, 7)] if staged.startswith(f"{directory}/") else []

    found = list(staged_below(["topics/t/", "topics/", "topics/other/"], walk))

    assert [(left.key, left.token, left.started_ms) for left in found] == [("topics/t/p=1/f0", {"path": staged}, 7)]
    assert all(directory.split("/")[-1] and "+tmp" in directory for directory in asked)


def test_directories_are_removed_up_to_the_first_that_is_not_empty() -> None:
    asked: list[str] = []

    def remove(directory: str) -> bool:
        asked.append(directory)
        return directory != "topics/+tmp/t"

    remove_emptied("topics/+tmp/t/p=1/f0.0123456789abcdef_tmp", remove)
    assert asked == ["topics/+tmp/t/p=1", "topics/+tmp/t"]


def test_probe_is_one_file_under_two_names_that_a_sweep_knows() -> None:
    first, second = probe_paths("topics/")
    (place, *_) = [place for place in staged_places("topics/") if place.key_of(first)]

    assert first != second
    assert place.key_of(first) == place.key_of(second)
    assert str(place.key_of(first)).startswith(f"topics/{PROBE_NAME}-")
