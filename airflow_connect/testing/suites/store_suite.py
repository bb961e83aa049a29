"""The conformance suite of stores. A subclass opens its store on an empty target and lists what is visible there.

class TestMyStore(StoreConformance):
    def open_store(self, target):
        return MyStore(str(target))

    def visible(self, target):
        return {str(f.relative_to(target)): f.read_bytes() for f in target.rglob("*") if f.is_file()}

    def put_foreign(self, target, key, data):
        (target / key).write_bytes(data)
"""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import ConnectError, PublishConflictError
from airflow_connect.exactly_once.recovery import sweep
from airflow_connect.stores.store import FilePublisher, LeftOver, Outcome, Stager, Store
from airflow_connect.testing.cases.store_case import (
    DIRECTORY,
    ROOT,
    VISIBLE,
    WAIT_S,
    StoreCase,
    identity,
    publish,
    publish_one,
    stage,
)

CHILD = """
import base64, pickle, sys
from airflow_connect.testing.cases.store_case import identity
store = pickle.loads(base64.b64decode(sys.stdin.readline()))
stager = store.stager("killed")
staged = []
for number in range(int(sys.argv[1])):
    file = stager.open(identity(number))
    file.write(b"x" * 1000)
    staged.append(file.close(number + 1, 1))
still_open = stager.open(identity(10_000))
still_open.write(b"y" * int(sys.argv[2]))
for future in staged:
    future.result()
print("staged", flush=True)
sys.stdin.read()
"""


class StoreConformance(StoreCase):
    """What every store must do. See `StoreCase` for what a subclass defines."""

    # --- staging --------------------------------------------------------------------------------------------------

    def test_staged_file_is_described_and_invisible(self, target: Any, stager: Stager) -> None:
        (file,) = stage(stager, {0: b"abc"})

        assert (file.key, file.topic, file.partition, file.start) == (identity(0).key, "t", 0, 0)
        assert (file.end, file.records, file.size_bytes, file.role) == (1, 1, 3, "value")
        assert self.visible(target) == {}

    def test_staged_file_survives_json(self, stager: Stager, publisher: FilePublisher) -> None:
        import json

        files = [StagedFile.from_json(json.loads(json.dumps(f.to_json()))) for f in stage(stager, {0: b"abc"})]

        assert publish(publisher, files) == {files[0].key: Outcome.PUBLISHED}

    def test_opened_file_costs_nothing_before_it_has_content(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        file = stager.open(identity(0))

        assert file.buffered_bytes == 0
        assert list(publisher.list_staged([ROOT])) == []
        file.abort()

    @pytest.mark.parametrize("data", [b"", b"a", os.urandom(70_000)], ids=["empty", "one byte", "70 kB"])
    def test_content_arrives(self, target: Any, stager: Stager, publisher: FilePublisher, data: bytes) -> None:
        (file,) = stage(stager, {0: data})
        publish(publisher, [file])

        assert file.size_bytes == len(data)
        assert self.visible(target) == {file.key: data}

    def test_every_kind_of_bytes_can_be_written_and_reused_afterwards(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        file, buffer = stager.open(identity(0)), bytearray(b"cd")
        file.write(b"ab")
        file.write(buffer)
        buffer[:] = b"xx"
        file.write(memoryview(b"..ef..")[2:4])
        staged = file.close(1, 1).result(WAIT_S)
        publish(publisher, [staged])

        assert self.visible(target) == {staged.key: b"abcdef"}

    def test_large_file_arrives_in_many_pieces_with_bounded_memory(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        data = os.urandom(self.large_bytes)
        file, most = stager.open(identity(0)), 0
        for start in range(0, len(data), 999_983):
            file.write(data[start : start + 999_983])
            most = max(most, file.buffered_bytes)
        staged = file.close(1, 1).result(WAIT_S)
        assert self.visible(target) == {}
        publish(publisher, [staged])

        assert self.visible(target) == {staged.key: data}
        assert most < self.large_bytes

    def test_spilled_bytes_leave_memory_and_keep_their_place(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = {n: stager.open(identity(n)) for n in range(5)}
        for turn in range(4):
            for n, file in files.items():
                file.write(b"%d-%d " % (n, turn) * 1000)
                if turn % 2:
                    file.spill()
                    assert file.buffered_bytes == 0
        staged = [file.close(n + 1, 1).result(WAIT_S) for n, file in files.items()]
        publish(publisher, staged)

        wanted = {identity(n).key: b"".join(b"%d-%d " % (n, turn) * 1000 for turn in range(4)) for n in files}
        assert self.visible(target) == wanted

    def test_many_small_files_close_in_any_order(self, target: Any, stager: Stager, publisher: FilePublisher) -> None:
        files = {n: stager.open(identity(n, f"{ROOT}t/p={n % 40}/")) for n in range(self.many_files)}
        for n, file in files.items():
            file.write(b"%d" % n * 100)
        futures = {n: file.close(n + 1, 1) for n, file in reversed(files.items())}
        staged = [futures[n].result(WAIT_S) for n in sorted(futures)]
        assert [f.start for f in staged] == list(range(self.many_files))
        assert self.visible(target) == {}
        outcomes = publish(publisher, staged)

        assert set(outcomes.values()) == {Outcome.PUBLISHED}
        assert self.visible(target) == {f.key: b"%d" % f.start * 100 for f in staged}

    def test_names_that_hold_the_last_offset(self, target: Any, stager: Stager, publisher: FilePublisher) -> None:
        named = replace(identity(3), key_at=lambda end: f"{DIRECTORY}t+0+{3:010}+{end - 1:010}.json")
        file = stager.open(named)
        file.write(b"abc")
        staged = file.close(8, 5).result(WAIT_S)

        assert staged.key == (named.final_key(8) if self.names_hold_end else named.key)
        assert [found.key for found in publisher.list_staged([ROOT])] == [named.key]
        publish(publisher, [staged])
        assert self.visible(target) == {staged.key: b"abc"}
        assert list(publisher.list_staged([ROOT])) == []

    @pytest.mark.parametrize("value", ["ä ö 漢", "a=b&c=d+%20#", "'single' \"double\"", "[x]*?{y}"])
    def test_unusual_characters_in_directories(
        self, target: Any, stager: Stager, publisher: FilePublisher, value: str
    ) -> None:
        directory = f"{ROOT}t/p={value}/"
        file = stager.open(identity(0, directory))
        file.write(b"abc")
        staged = file.close(1, 1).result(WAIT_S)

        assert [found.key for found in publisher.list_staged([directory])] == [staged.key]
        publish(publisher, [staged])
        assert self.visible(target) == {staged.key: b"abc"}

    def test_closed_file_takes_no_more(self, stager: Stager) -> None:
        file = stager.open(identity(0))
        file.close(1, 1).result(WAIT_S)

        with pytest.raises(ValueError, match="closed"):
            file.write(b"more")

    @pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
    def test_aborted_file_leaves_nothing(
        self, target: Any, store: Store, publisher: FilePublisher, is_closed: bool
    ) -> None:
        stager = store.stager("run-1")
        for start, size in enumerate((10, 6 << 20)):
            file = stager.open(identity(start))
            file.write(b"x" * size)
            if is_closed:
                file.close(start + 1, 1)
            file.abort()
            file.abort()
        stager.close()
        stager.close()

        assert list(publisher.list_staged([ROOT])) == []
        assert self.visible(target) == {}

    # --- publishing -----------------------------------------------------------------------------------------------

    def test_publishing_reports_progress_and_outcomes(self, stager: Stager, publisher: FilePublisher) -> None:
        files = stage(stager, dict.fromkeys(range(7), b"x"))
        seen: list[int] = []
        outcomes = publisher.publish(files, seen.append)

        assert outcomes == dict.fromkeys((f.key for f in files), Outcome.PUBLISHED)
        assert sorted(seen) == list(range(1, 8))
        assert publisher.publish([], seen.append) == {}

    def test_publishing_again_and_late_changes_nothing(
        self, target: Any, store: Store, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = stage(stager, {0: b"a", 1: os.urandom(100_000)})
        zombie = store.publisher(probe_prefix=ROOT, overwrite=False)
        publish(publisher, files)
        before = self.visible(target)

        assert set(publish(publisher, files).values()) <= VISIBLE
        assert set(publish(zombie, files).values()) <= VISIBLE
        assert self.visible(target) == before
        assert list(publisher.list_staged([ROOT])) == []
        zombie.close()

    def test_publishing_goes_on_where_another_ended(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = stage(stager, {n: b"%d" % n for n in range(6)})
        publish(publisher, files[:3])
        outcomes = publish(publisher, files)

        assert [outcomes[f.key] for f in files[3:]] == [Outcome.PUBLISHED] * 3
        assert {outcomes[f.key] for f in files[:3]} <= VISIBLE
        assert self.visible(target) == {f.key: b"%d" % f.start for f in files}

    def test_two_that_publish_the_same_at_once_both_succeed(self, target: Any, store: Store, stager: Stager) -> None:
        files = stage(stager, {n: b"%d" % n for n in range(30)})
        publishers = [store.publisher(probe_prefix=ROOT, overwrite=False) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            results = list(pool.map(lambda each: publish(each, files), publishers))

        assert all(set(result.values()) <= VISIBLE for result in results)
        assert self.visible(target) == {f.key: b"%d" % f.start for f in files}
        for each in publishers:
            assert list(each.list_staged([ROOT])) == []
            each.close()

    def test_two_stagings_of_one_key_at_once_one_wins(self, target: Any, store: Store, stager: Stager) -> None:
        rivals = [stage(stager, {0: data}) for data in (b"mine", b"other")]

        def try_to(files: Sequence[StagedFile]) -> str:
            publisher = store.publisher(probe_prefix=ROOT, overwrite=False)
            try:
                return publish(publisher, files)[files[0].key].value
            except PublishConflictError:
                return "conflict"
            finally:
                publisher.close()

        with ThreadPoolExecutor(2) as pool:
            results = sorted(pool.map(try_to, rivals))
        assert results == ["conflict", "published"]
        assert self.visible(target)[identity(0).key] in (b"mine", b"other")

    def test_foreign_file_is_a_conflict_and_does_not_keep_the_others_back(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = stage(stager, dict.fromkeys(range(3), b"ours"))
        self.put_foreign(target, files[1].key, b"their")
        with pytest.raises(PublishConflictError) as caught:
            publish(publisher, files)

        assert files[1].key in caught.value.message
        assert caught.value.suggestion
        assert self.visible(target) == {files[0].key: b"ours", files[1].key: b"their", files[2].key: b"ours"}

    def test_foreign_file_of_the_same_size_is_a_conflict(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        (file,) = stage(stager, {0: b"ours"})
        self.put_foreign(target, file.key, b"them")

        with pytest.raises(PublishConflictError):
            publish(publisher, [file])
        assert self.visible(target) == {file.key: b"them"}

    def test_published_file_that_a_third_party_changed_is_a_conflict(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = stage(stager, {0: b"ours"})
        publish(publisher, files)
        self.put_foreign(target, files[0].key, b"theirs")

        with pytest.raises(PublishConflictError):
            publish(publisher, files)

    def test_equal_foreign_file_is_not_replaced(self, target: Any, stager: Stager, publisher: FilePublisher) -> None:
        (file,) = stage(stager, {0: b"same bytes"})
        self.put_foreign(target, file.key, b"same bytes")

        if self.compares_content:
            assert publish(publisher, [file]) == {file.key: Outcome.ALREADY_PUBLISHED}
            assert list(publisher.list_staged([ROOT])) == []
        else:
            with pytest.raises(PublishConflictError):
                publish(publisher, [file])
        assert self.visible(target) == {file.key: b"same bytes"}

    def test_overwriting_replaces_a_foreign_file(self, target: Any, store: Store, stager: Stager) -> None:
        (file,) = stage(stager, {0: b"ours"})
        self.put_foreign(target, file.key, b"theirs")
        publisher = store.publisher(probe_prefix=ROOT, overwrite=True)

        assert publish(publisher, [file]) == {file.key: Outcome.PUBLISHED}
        assert set(publish(publisher, [file]).values()) <= VISIBLE
        assert self.visible(target) == {file.key: b"ours"}
        publisher.close()

    def test_lost_file_is_named_and_can_be_staged_again(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = stage(stager, {0: b"a", 1: b"b"})
        assert publisher.abort(files[:1]) == 1

        assert publish(publisher, files) == {files[0].key: Outcome.LOST, files[1].key: Outcome.PUBLISHED}
        again = stage(stager, {0: b"a"})
        assert publish(publisher, again) == {files[0].key: Outcome.PUBLISHED}
        assert self.visible(target) == {files[0].key: b"a", files[1].key: b"b"}

    def test_two_files_of_one_name_are_refused_before_anything_is_visible(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = [*stage(stager, {0: b"a"}), *stage(stager, {0: b"b"})]

        with pytest.raises(PublishConflictError):
            publish(publisher, files)
        assert self.visible(target) == {}

    # --- leftovers ------------------------------------------------------------------------------------------------

    def test_abort_discards_what_is_staged_and_nothing_published(
        self, target: Any, stager: Stager, publisher: FilePublisher
    ) -> None:
        files = stage(stager, dict.fromkeys(range(4), b"x"))
        publish(publisher, files[:2])

        assert publisher.abort(files[2:]) == 2
        assert publisher.abort(files) == 0
        assert sorted(self.visible(target)) == [f.key for f in files[:2]]
        assert list(publisher.list_staged([ROOT])) == []

    def test_list_finds_by_prefix_and_each_once(self, stager: Stager, publisher: FilePublisher) -> None:
        mine = stage(stager, dict.fromkeys(range(3), b"x"))
        others = [stager.open(identity(9, f"{ROOT}{place}/")) for place in ("t2/p=1", "t/day=2026-11-23")]
        for other in others:
            other.close(10, 1).result(WAIT_S)

        def keys(*prefixes: str) -> list[str]:
            return sorted(found.key for found in publisher.list_staged(prefixes))

        assert keys(DIRECTORY) == keys(f"{DIRECTORY}t+0+") == [f.key for f in mine]
        assert keys(f"{ROOT}t/", DIRECTORY) == sorted(
            [*(f.key for f in mine), f"{ROOT}t/day=2026-11-23/t+0+0000000009.json"]
        )
        assert len(keys(ROOT)) == 5
        assert keys(identity(1).key) == [identity(1).key]
        assert keys(f"{ROOT}nothing/") == keys() == []

    def test_list_tells_two_stagings_of_one_key_apart(self, stager: Stager, publisher: FilePublisher) -> None:
        first, second = stage(stager, {0: b"first"}), stage(stager, {0: b"second"})
        found = list(publisher.list_staged([ROOT]))

        assert [f.key for f in found] == [identity(0).key] * 2
        assert publisher.abort(found[:1]) == 1
        outcomes = [publish_one(publisher, files[0]) for files in (first, second)]
        assert sorted(outcome.value for outcome in outcomes) in (
            ["already published", "published"],
            ["lost", "published"],
        )

    def test_list_never_shows_a_published_file(self, stager: Stager, publisher: FilePublisher) -> None:
        files = stage(stager, dict.fromkeys(range(4), b"x"))
        publish(publisher, files[:3])

        assert [found.key for found in publisher.list_staged([ROOT, DIRECTORY])] == [files[3].key]

    def test_sweep_spares_what_a_manifest_names(self, target: Any, stager: Stager, publisher: FilePublisher) -> None:
        named, dead = stage(stager, {0: b"named"}), stage(stager, {0: b"dead", 1: b"dead"})
        foreign = stage(stager, {500: b"out of range"})
        pattern = rf"{ROOT}(?P<topic>t)/day=[^/]+/t\+(?P<partition>0)\+(?P<start>\d+)\.json"
        leftovers = LeftoverPattern("store", (ROOT,), pattern, (OffsetRange("t", 0, 0, 100),))

        assert sweep(publisher, leftovers, named) == len(dead)
        assert [f.key for f in publisher.list_staged([ROOT])] == sorted(f.key for f in (*named, *foreign))
        publish(publisher, named)
        assert self.visible(target) == {named[0].key: b"named"}

    def test_process_killed_while_it_stages_leaves_what_a_sweep_finds(
        self, target: Any, store: Store, publisher: FilePublisher
    ) -> None:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, "12", str(self.large_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdin, child.stdout:
            try:
                child.stdin.write(base64.b64encode(pickle.dumps(store)) + b"\n")
                child.stdin.flush()
                assert child.stdout.readline() == b"staged\n"
            finally:
                child.kill()
                child.wait()
        found = list(publisher.list_staged([DIRECTORY]))

        assert (
            {identity(n).key for n in range(12)}
            <= {f.key for f in found}
            <= {identity(n).key for n in (*range(12), 10_000)}
        )
        assert self.visible(target) == {}
        assert publisher.abort(found) == len(found)
        assert list(publisher.list_staged([ROOT])) == []

    # --- the rest -------------------------------------------------------------------------------------------------

    def test_mark_makes_empty_files_and_may_be_repeated(self, target: Any, publisher: FilePublisher) -> None:
        keys = [f"{ROOT}t/p={n}/_SUCCESS" for n in range(5)]
        publisher.mark(keys)
        publisher.mark(keys)
        publisher.mark([])

        assert self.visible(target) == dict.fromkeys(keys, b"")

    def test_write_puts_a_file_whole_and_in_place_of_another(self, target: Any, publisher: FilePublisher) -> None:
        key = f"{ROOT}+runs/a b/run.json"
        publisher.write(key, b"first")
        publisher.write(key, b"\xffsecond")

        assert self.visible(target) == {key: b"\xffsecond"}
        assert list(publisher.list_staged([ROOT, ""])) == []

    def test_preflight_leaves_nothing(self, target: Any, publisher: FilePublisher) -> None:
        publisher.preflight()

        assert self.visible(target) == {}
        assert list(publisher.list_staged([ROOT, ""])) == []

    def test_preflight_refuses_with_a_sentence(self, target: Any) -> None:
        for store in self.unusable_stores(target):
            publisher = store.publisher(probe_prefix=ROOT, overwrite=False)
            with pytest.raises(ConnectError) as caught:
                publisher.preflight()
            publisher.close()
            assert caught.value.message.endswith("."), caught.value.message
            assert "Traceback" not in caught.value.message

    def test_name_has_no_secret_and_a_store_can_be_pickled(self, store: Store) -> None:
        assert store.name
        assert pickle.loads(pickle.dumps(store)).name == store.name

    def test_several_tasks_stage_at_once(self, target: Any, store: Store, publisher: FilePublisher) -> None:
        def task(number: int) -> list[StagedFile]:
            stager = store.stager("run-1")
            try:
                return stage(stager, {number * 100 + n: b"%d" % number for n in range(10)})
            finally:
                stager.close()

        with ThreadPoolExecutor(4) as pool:
            files = [file for staged in pool.map(task, range(4)) for file in staged]
        publish(publisher, files)

        assert self.visible(target) == {f.key: b"%d" % (f.start // 100) for f in files}


__all__ = ["LeftOver", "StoreConformance"]
