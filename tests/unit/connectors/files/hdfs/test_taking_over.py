from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.files.hdfs.file_trees import LocalTree
from airflow_connect.connectors.files.hdfs.taking_over import TakingOver
from airflow_connect.errors import ConfigError
from airflow_connect.layout.names.object_names import NameSettings
from tests.unit.connectors.files.hdfs.wal_bytes import block, entry, log

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Place:
    """A directory as Confluent's sink leaves it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, data: bytes = b"some bytes") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def move(self, number: int, name: str, *, staged: bool = True) -> tuple[str, str]:
        temporary = f"topics/+tmp/t/partition=0/{number}_tmp.avro"
        if staged:
            self.put(temporary, f"content {number}".encode())
        return f"file://{self.root}/topics//+tmp/t/partition=0/{number}_tmp.avro", f"file://{self.root}/topics/{name}"

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())

    def offsets(
        self, *partitions: TopicPartition, apply: bool = True, names: NameSettings | None = None, logs: str = "logs"
    ) -> Mapping[TopicPartition, int]:
        settings = names or NameSettings(hold_end=True, topic_pattern="")
        return TakingOver(LocalTree(str(self.root)), settings, logs).offsets(partitions or (T0,), apply=apply)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_an_empty_place_tells_nothing(place):
    assert place.offsets(T0, T1) == {}


def test_names_of_published_files_tell_the_offset(place):
    place.put("topics/t/partition=0/t+0+0000000000+0000000009.avro")
    place.put("topics/t/partition=0/t+0+0000000010+0000000019.avro")
    place.put("topics/t/a=b/c=d/t+0+0000000015+0000000021.avro")
    place.put("topics/t/partition=1/t+1+3+5")
    assert place.offsets(T0, T1) == {T0: 22, T1: 6}


@pytest.mark.parametrize(
    "name",
    [
        "topics/t/partition=0/other+0+0000000000+0000000009.avro",
        "topics/t/partition=0/t+0+0000000009.avro",
        "topics/t/partition=0/t+0+1+2.avro.gz",
        "topics/t/_SUCCESS",
        "topics/t2/partition=0/t2+0+0000000000+0000000009.avro",
        "topics/+tmp/t/partition=0/x_tmp.avro",
        "topics/t/partition=0/t+0+0+9.parquet",
    ],
)
def test_other_files_tell_nothing(place, name):
    place.put(name, b"PAR1" if name.endswith(".parquet") else b"some bytes")
    assert place.offsets(T0) == {}


def test_a_parquet_file_that_a_crash_left_empty_is_deleted_like_confluent_does(place):
    place.put("topics/t/partition=0/t+0+0+9.parquet", b"")
    assert place.offsets(apply=False) == {}
    assert place.files() == ["topics/t/partition=0/t+0+0+9.parquet"]
    assert place.offsets() == {}
    assert place.files() == []


def test_a_block_that_was_decided_is_published(place):
    first = place.move(1, "t/partition=0/t+0+0000000000+0000000004.avro")
    second = place.move(2, "t/partition=0/t+0+0000000005+0000000009.avro", staged=False)
    place.put("topics/t/partition=0/t+0+0000000005+0000000009.avro", b"published before")
    place.put("logs/t/0/log", log(block(first, second)))
    assert place.offsets() == {T0: 10}
    assert place.files() == [
        "logs/t/0/log.taken-over",
        "topics/t/partition=0/t+0+0000000000+0000000004.avro",
        "topics/t/partition=0/t+0+0000000005+0000000009.avro",
    ]
    published = place.root / "topics/t/partition=0/t+0+0000000000+0000000004.avro"
    assert published.read_bytes() == b"content 1"


def test_a_name_that_is_taken_is_not_replaced(place):
    move = place.move(1, "t/partition=0/t+0+0000000000+0000000004.avro")
    place.put("topics/t/partition=0/t+0+0000000000+0000000004.avro", b"there")
    place.put("logs/t/0/log", log(block(move)))
    assert place.offsets() == {T0: 5}
    assert (place.root / "topics/t/partition=0/t+0+0000000000+0000000004.avro").read_bytes() == b"there"
    assert not (place.root / "topics/+tmp/t/partition=0/1_tmp.avro").exists()


def test_what_was_not_decided_is_discarded_and_copied_again(place):
    done = place.move(1, "t/partition=0/t+0+0000000000+0000000004.avro")
    begun = place.move(2, "t/partition=0/t+0+0000000005+0000000009.avro")
    place.put("logs/t/0/log", log(block(done), entry("BEGIN"), entry(*begun)))
    assert place.offsets() == {T0: 5}
    assert place.files() == ["logs/t/0/log.taken-over", "topics/t/partition=0/t+0+0000000000+0000000004.avro"]


def test_temporary_files_that_no_log_names_stay(place):
    place.put("topics/+tmp/t/partition=0/somebodys_tmp.avro")
    place.put("topics/t/partition=0/t+0+0+4.avro")
    assert place.offsets() == {T0: 5}
    assert "topics/+tmp/t/partition=0/somebodys_tmp.avro" in place.files()


def test_nothing_but_temporary_files_is_ever_deleted(place):
    place.put("important")
    place.put("logs/t/0/log", log(entry("BEGIN"), entry(f"file://{place.root}/important", "x")))
    assert place.offsets() == {}
    assert "important" in place.files()


def test_the_former_log_tells_the_offset_where_files_were_moved_away(place):
    place.put("logs/t/0/log.1", log(block(place.move(1, "t/partition=0/t+0+20+29.avro", staged=False))))
    assert place.offsets() == {T0: 30}


def test_a_damaged_log_leaves_the_offset_to_the_names(place):
    place.put("logs/t/0/log", b"WAL\0" + bytes(7))
    place.put("topics/t/partition=0/t+0+0+4.avro")
    assert place.offsets() == {T0: 5}


def test_a_log_that_lags_behind_the_names_does_not_bring_records_twice(place):
    place.put("logs/t/0/log", log(block(place.move(1, "t/partition=0/t+0+0+4.avro", staged=False))))
    place.put("topics/t/partition=0/t+0+5+9.avro")
    assert place.offsets() == {T0: 10}


def test_looking_changes_nothing_and_finds_the_same(place):
    move = place.move(1, "t/partition=0/t+0+0+4.avro")
    place.put("logs/t/0/log", log(block(move)))
    before = place.files()
    assert place.offsets(apply=False) == {T0: 5}
    assert place.files() == before
    assert place.offsets(apply=True) == {T0: 5}


def test_doing_it_again_finds_the_same_although_logs_are_put_aside(place):
    place.put("logs/t/0/log", log(block(place.move(1, "t/partition=0/t+0+20+29.avro", staged=False))))
    place.put("logs/t/0/log.1", log(block(place.move(2, "t/partition=0/t+0+10+19.avro", staged=False))))
    assert [place.offsets() for _ in range(3)] == [{T0: 30}] * 3
    assert place.files() == ["logs/t/0/log.1.taken-over", "logs/t/0/log.taken-over"]


def test_directories_depend_on_the_topic(place):
    names = NameSettings("${1}/data", hold_end=True, topic_pattern="(.).*")
    place.put("o/data/orders/partition=0/orders+0+0+6.avro")
    place.put("logs/o/orders/0/log", log(block(("/x", "/o/data/orders/orders+0+7+8.avro"))))
    orders = TopicPartition("orders", 0)
    assert place.offsets(orders, names=names, logs="/logs/${1}") == {orders: 9}


def test_a_topic_that_fits_no_directory_is_told(place):
    names = NameSettings("${1}", hold_end=True, topic_pattern="(x)")
    with pytest.raises(ConfigError, match="Topic t does not fully match"):
        place.offsets(names=names)
