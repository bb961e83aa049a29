"""The commit protocol under every interleaving that hypothesis thinks of: crashes, lost answers, zombies, lifecycle."""

from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace
from unittest import mock

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import FencedError, PublishConflictError, StagedFileLostError, UnavailableError
from tests.support.session.searching import examples
from tests.unit.exactly_once.model import (
    CRASH,
    CRASH_AFTER,
    FAIL,
    GO,
    LOSE,
    TOPIC,
    ModelRun,
    ModelSession,
    Upload,
    World,
)
from tests.unit.exactly_once.model_log import is_bad, is_gap

PARTITIONS = 2
MOST_RUNS = 4
STRANGERS = {"d/t+0+1.tmp": "another grammar", "e/t+0+0": "another directory", "d/u+0+0": "another topic"}


class CommitProtocol(RuleBasedStateMachine):
    """Runs of one connector, any number of them at once, on one world."""

    def __init__(self) -> None:
        super().__init__()
        listener = nullcontext(SimpleNamespace(target={}, tasks=list))
        self._patches = [
            mock.patch("airflow_connect.runtime.driver.sink.run.SinkSession", ModelSession),
            mock.patch("airflow_connect.runtime.driver.progress.ProgressListener", return_value=listener),
            # A run that waits for its turn is not late.
            mock.patch("airflow_connect.runtime.driver.sink.staged_files.DISCARD_WITHIN_S", 3600.0),
        ]
        for patch in self._patches:
            patch.start()
        self.world = World(ends={TopicPartition(TOPIC, p): 0 for p in range(PARTITIONS)})
        self.runs: list[ModelRun] = []
        self.seen: dict[str, object] = {}
        self.aborted = 0

    @initialize(counts=st.tuples(st.integers(1, 12), st.integers(0, 12)), has_comparable_etags=st.booleans())
    def begin(self, counts, has_comparable_etags):
        self.world.has_comparable_etags = has_comparable_etags  # With SSE-KMS only the upload itself tells.
        for number, key in enumerate(STRANGERS):
            self.world.uploads[f"stranger-{number}"] = Upload(key, (), None)
        self.produce(counts)

    @rule(counts=st.tuples(st.integers(0, 8), st.integers(0, 8)))
    def produce(self, counts):
        for partition, count in enumerate(counts):
            self.world.ends[TopicPartition(TOPIC, partition)] += count

    @precondition(lambda self: len(self.alive) < MOST_RUNS)
    @rule(flush_size=st.integers(1, 4), flush_on_end=st.booleans(), max_records=st.sampled_from([0, 0, 5]))
    def start(self, flush_size, flush_on_end, max_records):
        run = ModelRun(self.world, flush_size=flush_size, flush_on_end=flush_on_end, max_records=max_records)
        self.runs.append(run)

    @precondition(lambda self: len(self.alive) < MOST_RUNS - 1)
    @rule(
        suspended_at=st.sampled_from(["read", "list", "look", "begin", "manifest", "complete"]),
        moment=st.sampled_from(["look", "begin", "stage", "manifest", "complete", "commit"]),
    )
    def overtake(self, suspended_at, moment):
        """A run is suspended, and continues when a newer one is in the middle of its work."""
        suspended = self._run_up_to(suspended_at)
        self._run_up_to(moment)
        suspended.finish()

    def _run_up_to(self, moment):
        run = ModelRun(self.world, flush_size=2, flush_on_end=True)
        self.runs.append(run)
        while not run.is_over and not run.waiting_for.startswith(moment):
            run.step(GO)
        return run

    @precondition(lambda self: self.alive)
    @rule(which=st.integers(0, MOST_RUNS - 1), steps=st.integers(1, 12))
    def go_on(self, which, steps):
        run = self.alive[which % len(self.alive)]
        for _ in range(steps):
            if not run.is_over:
                run.step(GO)
                self.nothing_visible_is_wrong()

    @precondition(lambda self: self.alive)
    @rule(which=st.integers(0, MOST_RUNS - 1), how=st.sampled_from([CRASH, FAIL, CRASH_AFTER, LOSE]))
    def disturb(self, which, how):
        self.alive[which % len(self.alive)].step(how)

    @precondition(lambda self: self.alive)
    @rule(which=st.integers(0, MOST_RUNS - 1))
    def finish(self, which):
        self.alive[which % len(self.alive)].finish()

    @precondition(lambda self: any(u.run for u in self.world.uploads.values()))
    @rule(which=st.integers(0, 50))
    def lifecycle_rule_aborts_an_upload(self, which):
        ours = [token for token, upload in self.world.uploads.items() if upload.run]
        del self.world.uploads[ours[which % len(ours)]]
        self.aborted += 1

    @property
    def alive(self) -> list[ModelRun]:
        """Runs that have not ended."""
        return [run for run in self.runs if not run.is_over]

    @invariant()
    def nothing_visible_is_wrong(self):
        world = self.world
        for key, content in world.objects.items():
            # Invariant 1: nothing is visible before a manifest names it. Invariant 4: nothing visible changes.
            assert content in world.manifested.get(key, ()), f"{key} is visible without a manifest"
            assert self.seen.setdefault(key, content) == content, f"{key} has changed"
        assert set(self.seen) <= set(world.objects), "an object has vanished"
        times = Counter(record for content in world.objects.values() for record in content)
        assert set(times.values()) <= {1}, "a record is visible twice"
        for tp, offset in world.committed.items():
            # Invariants 3, 5 and 7: a committed offset stands for records that are visible.
            missing = [o for o in range(offset) if not is_gap(o) and not is_bad(o) and not times[tp, o]]
            assert missing == [], f"{tp} is committed up to {offset} without {missing}"

    @invariant()
    def dead_letters_are_written_once(self):
        wanted = {
            f"{tp.partition}@{o}".encode() for tp, end in self.world.committed.items() for o in range(end) if is_bad(o)
        }
        wanted = {w for w in wanted if not is_gap(int(w.split(b"@")[1]))}
        letters = [value for _, value in self.world.dead_letters]
        assert sorted(letters) == sorted(wanted)

    @invariant()
    def uploads_of_strangers_stay(self):
        """Invariant 8."""
        assert sum(upload.run is None for upload in self.world.uploads.values()) == len(STRANGERS)

    @invariant()
    def runs_end_for_reasons_that_were_given(self):
        for run in self.runs:
            if isinstance(run.error, StagedFileLostError):
                # What a fenced run copies again, the sweep of its successor may take away.
                is_fenced = run.epoch < self.world.epoch
                assert self.aborted > 1 or is_fenced, (
                    "only a file that is lost, copied again and lost again fails a run"
                )
            elif isinstance(run.error, PublishConflictError):
                assert not self.world.has_comparable_etags and run.epoch < self.world.epoch, run.error
            elif run.error is not None and not isinstance(run.error, FencedError):
                assert isinstance(run.error, UnavailableError) and run.was_disturbed, run.error

    def teardown(self):
        try:
            for run in self.alive:
                run.finish()
            for _ in range(3):
                last = ModelRun(self.world, flush_size=3, flush_on_end=True)
                last.finish()
            self._everything_arrived(last)
        finally:
            for run in self.alive:
                run.step(CRASH)
            for patch in self._patches:
                patch.stop()

    def _everything_arrived(self, last):
        self.nothing_visible_is_wrong()
        self.dead_letters_are_written_once()
        assert last.report is not None and last.report.status == "empty"
        assert self.world.manifest is None
        assert self.world.committed == self.world.ends
        assert len(self.world.summaries) == len(set(self.world.summaries)), "a run is in the history twice"
        # What a fenced run stages after its successors have swept is its own to discard; one that dies then cannot.
        left = [u.key for u in self.world.uploads.values() if u.run and not (u.is_late and u.run.was_disturbed)]
        assert left == []


CommitProtocol.TestCase.settings = settings(
    max_examples=examples(300),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_commit_protocol = CommitProtocol.TestCase


class CommitProtocolWithParts(CommitProtocol):
    """The same with partitions that several tasks share, and tasks that end before the next one's range begins."""

    @initialize(count=st.integers(10, 40))
    def begin_with_a_large_partition(self, count):
        self.produce((count, 1))

    @rule(count=st.integers(10, 30))
    def produce_much(self, count):
        self.produce((count, 0))

    @precondition(lambda self: len(self.alive) < MOST_RUNS)
    @rule(
        flush_size=st.integers(1, 3),
        tasks_max=st.integers(2, 4),
        most_letters=st.sampled_from([0, 1, 1]),
        moment=st.sampled_from(["fence", "manifest", "complete", "follow", "commit", ""]),
    )
    def start_with_parts(self, flush_size, tasks_max, most_letters, moment):
        more = {"tasks_max": tasks_max, "split_from": 1, "most_letters": most_letters}
        run = ModelRun(self.world, flush_size=flush_size, flush_on_end=True, **more)
        self.runs.append(run)
        while not run.is_over and not (moment and run.waiting_for.startswith(moment)):
            run.step(GO)


CommitProtocolWithParts.TestCase.settings = settings(CommitProtocol.TestCase.settings, max_examples=examples(150))
test_commit_protocol_with_parts = CommitProtocolWithParts.TestCase
