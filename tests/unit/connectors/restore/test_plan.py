"""What is left to restore: names, one listing, and what earlier runs have committed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import Backup, BackupFile, FileNames
from airflow_connect.connectors.restore.passed import fingerprint, text_of
from airflow_connect.connectors.restore.plan import chains_left, missing_files
from airflow_connect.connectors.restore.progress import Progress, partition_of, topic_partition_of
from airflow_connect.connectors.restore.values.files import ValueBackup, ValueNames
from airflow_connect.connectors.restore.work import chains_of, divided, task_config
from airflow_connect.errors import ConfigError, OffsetError
from airflow_connect.stores.file_system import FoundFile

ROOT = "s3://b/topics"
TP = TopicPartition("t", 0)


def found(name: str, size: int = 100, modified_ms: int = 1_000, etag: str = "e") -> FoundFile:
    return FoundFile(f"{ROOT}/{name}", size, modified_ms, etag)


def listed(*files: FoundFile, extension: str = ".parquet", delimiter: str = "+") -> Backup:
    return Backup.of(files, FileNames(ROOT, delimiter, extension), lambda _: True)


def one(start: int, **more: Any) -> FoundFile:
    return found(f"t/partition=0/t+0+{start:010d}.parquet", **more)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t/partition=0/t+0+0000000005.parquet", (TP, 5, -1)),
        ("t/partition=0/t+0+0000000005.zstd.parquet", (TP, 5, -1)),
        ("t/year=2026/month=11/t+0+5+9.parquet", (TP, 5, 9)),
        ("a.b-c_d/x/a.b-c_d+12+0.parquet", (TopicPartition("a.b-c_d", 12), 0, -1)),
        ("t/partition=0/t+0+9999999999999.parquet", (TP, 9999999999999, -1)),
    ],
)
def test_name_tells_partition_and_offsets(name: str, expected: Any) -> None:
    backup = listed(found(name))
    ((tp, (file,)),) = backup.chains.items()
    assert (tp, file.start, file.end) == expected
    assert file.name == name


@pytest.mark.parametrize(
    "name",
    [
        "t/partition=0/t+0+5.avro",
        "t/partition=0/t+0+5.keys.parquet",
        "t/partition=0/t+0+5.headers.parquet",
        "t/partition=0/u+0+5.parquet",
        "t/partition=0/t+0.parquet",
        "t/partition=0/_SUCCESS",
        "t/partition=0/t+0+9+5.parquet",
        "t/partition=0/t+0+99999999999999999999.parquet",
        "t+0+5.parquet",
    ],
)
def test_file_with_another_name_is_counted_and_named(name: str) -> None:
    backup = listed(found(name))
    assert not backup.chains
    assert backup.notes(ROOT) == [
        f"1 file has a name that no file of the chosen format has, and none is read: {ROOT}/{name}."
    ]


def test_temporary_files_of_a_sink_are_counted() -> None:
    backup = listed(found("+tmp/t/partition=0/t+0+5.parquet.0123456789abcdef_tmp"))
    assert backup.notes(ROOT) == ["1 temporary file of a sink is below s3://b/topics, and not read."]


@pytest.mark.parametrize("delimiter", ["-", "_", "."])
@pytest.mark.parametrize("topic", ["a{}b", "t", "t{}1", "t{}0{}5"])
@pytest.mark.parametrize("end", ["", "{}0000000009"])
def test_delimiters_that_topics_may_have_in_their_names(delimiter: str, topic: str, end: str) -> None:
    topic, last = topic.replace("{}", delimiter), end.replace("{}", delimiter)
    file = found(f"{topic}/p/{topic}{delimiter}0{delimiter}0000000005{last}.parquet")
    backup = listed(file, delimiter=delimiter)
    assert [(tp, one.start, one.end) for tp, (one,) in backup.chains.items()] == [
        (TopicPartition(topic, 0), 5, 9 if end else -1)
    ]
    read = ValueNames(ROOT, delimiter, [".parquet"], "tombstone").read(file)
    assert read is not None and (read[0], read[3].start) == (TopicPartition(topic, 0), 5)
    assert read[1] == file.name.removeprefix(f"{ROOT}/").removesuffix(".parquet")


def test_files_are_in_the_order_of_numbers_over_all_directories() -> None:
    backup = listed(found("t/h=2/t+0+9.parquet"), found("t/h=1/t+0+10.parquet"), found("t/h=3/t+0+0.parquet"))
    assert [file.start for file in backup.chains[TP]] == [0, 9, 10]


def test_internal_topic_is_refused() -> None:
    with pytest.raises(ConfigError, match="__consumer_offsets is a topic of Kafka itself"):
        listed(found("__consumer_offsets/partition=0/__consumer_offsets+0+0.parquet"))
    names = ValueNames(ROOT, "+", [".json"], "tombstone")
    with pytest.raises(ConfigError, match="__consumer_offsets is a topic of Kafka itself"):
        ValueBackup.of([found("__consumer_offsets/partition=0/__consumer_offsets+0+0.json")], names, lambda _: True)


def left(backup: Backup, progress: Progress | None = None) -> list[Any]:
    return chains_left(backup, {} if progress is None else {TP: progress}, identity_is_content=True)


def test_new_chain_begins_with_the_first_file() -> None:
    (chain,) = left(listed(one(7), one(20)))
    assert chain.progress == Progress(7, 7)
    assert [file.start for file in chain.files] == [7, 20]


DONE = Progress(20, 20, 0, 2, 1_000, "t/partition=0/t+0+0000000010.parquet", "e", "t", "id", "run")


def test_topic_that_was_only_chosen_begins_with_the_first_file_there_is_now() -> None:
    chosen = Progress(10, 10, target="t", topic_id="id", run="run")
    (chain,) = left(listed(one(0), one(10)), chosen)
    assert chain.progress == replace(chosen, position=0, first_open=0)


def test_what_is_restored_is_not_read_again() -> None:
    assert left(listed(one(0), one(10)), DONE) == []
    (chain,) = left(listed(one(0), one(10), one(20, modified_ms=2_000)), DONE)
    assert [file.start for file in chain.files] == [20]
    assert (chain.before, chain.before_ms) == (2, 1_000)


def test_deleted_files_that_are_restored_are_fine() -> None:
    assert left(listed(one(10)), DONE) == []
    assert left(listed(), DONE) == []


def test_file_that_comes_while_another_one_is_deleted_is_found_by_its_name() -> None:
    kept = text_of(fingerprint(file.name.removeprefix(f"{ROOT}/") for file in (one(0), one(10))))
    progress = replace(DONE, names=kept)
    assert left(listed(one(0), one(10)), progress) == []
    assert missing_files(listed(one(0), one(10)), {TP: progress}) == []
    # As many as before, none of them newer.
    with pytest.raises(OffsetError, match="as many as before, with other names") as caught:
        left(listed(one(5), one(10)), progress)
    assert caught.value.code == "restore.late_file"
    (told,) = missing_files(listed(one(10)), {TP: progress})
    assert told.startswith("Of t-0, 1 file is not there any more that was restored.")
    assert left(listed(one(10)), progress) == []
    assert missing_files(listed(), {TP: progress}) == []
    (chain,) = left(listed(one(0), one(10), one(20)), progress)
    assert text_of(chain.before_names) == kept


def test_file_that_is_restored_in_part_is_read_from_there() -> None:
    progress = replace(DONE, position=15, first_open=10, open=1)
    (chain,) = left(listed(one(0), one(10), one(20)), progress)
    assert [file.start for file in chain.files] == [10, 20]


@pytest.mark.parametrize(
    ("files", "code", "message"),
    [
        ([one(0), one(10, etag="f")], "restore.changed", "it is f, and was e"),
        ([one(0), one(10), one(5, modified_ms=3_000)], "restore.late_file", "t\\+0\\+0000000005"),
        ([one(0), one(10), one(5)], "restore.late_file", "before offset 20, .*: 1 file more"),
        ([one(0, modified_ms=3_000), one(10)], "restore.late_file", "t\\+0\\+0000000000"),
    ],
    ids=["changed", "later", "same time", "replaced"],
)
def test_files_that_change_behind_the_restore_are_an_error(files: Any, code: str, message: str) -> None:
    with pytest.raises(OffsetError, match=message) as caught:
        left(listed(*files), DONE)
    assert caught.value.code == code


@pytest.mark.parametrize("files", [[one(0)], []], ids=["one of two", "all"])
def test_file_that_is_gone_in_the_middle_is_an_error(files: Any) -> None:
    progress = replace(DONE, position=15, first_open=0, open=2)
    with pytest.raises(OffsetError, match="in the middle of 2 files") as caught:
        left(listed(*files), progress)
    assert caught.value.code == "restore.gone"


def test_hundred_thousand_files_need_bounded_memory() -> None:
    def many() -> Iterator[FoundFile]:
        for number in range(100_000):
            topic, start = f"topic-{number % 50}", number * 1_000
            name = f"{topic}/year=2026/month=11/day=27/hour=02/{topic}+{number % 7}+{start:010d}.zstd.parquet"
            yield found(name, etag=f"{number:032x}")

    tracemalloc.start()
    backup = Backup.of(many(), FileNames(ROOT, "+", ".parquet"), lambda _: True)
    chains = chains_left(backup, {}, identity_is_content=True)
    configs = [task_config({}, part) for part in divided(chains, 4)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(len(chain.files) for chain in chains) == 100_000
    assert [len(chains_of(config)) > 0 for config in configs] == [True] * 4
    assert peak < 120 << 20
    assert sum(len(value) for config in configs for value in config.values()) < 10 << 20


def test_chains_are_divided_by_bytes() -> None:
    backup = listed(*(found(f"t/p/t+{n}+0.parquet", size=1000 if n == 0 else 100) for n in range(9)))
    parts = divided(left(backup), 2)
    assert [sorted(chain.partition for chain in part) for part in parts] == [[0], list(range(1, 9))]


def test_work_of_a_task_survives_its_configuration() -> None:
    backup = listed(found("t/\udcff/t+0+0.parquet"), one(5))
    (chain,) = left(backup)
    chain = chain._replace(deletes_before_ms=5, first_ms=6, last_ms=7)
    config = task_config({"name": "x"}, [chain])
    assert chains_of(config) == [chain]
    assert config["name"] == "x"


def test_offset_survives_json_and_no_other_form_is_taken() -> None:
    assert Progress.of(DONE.to_offset()) == DONE
    for wrong in ({}, {"position": 1}, {**DONE.to_offset(), "position": "1"}, {**DONE.to_offset(), "first_open": 99}):
        with pytest.raises(OffsetError, match="is not an offset of a restore"):
            Progress.of(wrong)


def test_partition_of_another_backup_is_not_ours() -> None:
    assert topic_partition_of(ROOT, partition_of(ROOT, TP)) == TP
    assert topic_partition_of(ROOT, partition_of("s3://other", TP)) is None
    assert topic_partition_of(ROOT, {"filename": "x"}) is None


def test_version_of_a_file(tmp_path: Path) -> None:
    file = BackupFile("n", 3, 4, 5, "etag", 0)
    assert file.version(identity_is_content=True) == "etag"
    assert file.version(identity_is_content=False) == "3 bytes, modified at 4 ms"
