"""A model of the world that the commit protocol lives in: a log, a journal with epochs, a bucket with uploads.

The protocol itself is the real code (`SinkRun`, `commit`, `recovery`, `audit`, `planner`); only what it talks to is a
model. Every call that could go wrong is a *turn*: the run, in a thread of its own, stops there until the test says how
it goes: `go`, `crash` or `fail` before the effect, `crash_after`, `lose` (the answer) or `deny` (answer that the run is
fenced) after it. So runs interleave in every way, and every run of the test is repeatable.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.sink import Splitting
from airflow_connect.api.sink_state import CopiedRun, PlannedRun, PlannedState, StateAfter
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import (
    STOPPED_BY_DEAD_LETTERS,
    PartitionReport,
    PublishedRun,
    RunReport,
    TaskPlan,
    TaskReport,
)
from airflow_connect.errors import ConnectError, FencedError, PublishConflictError, UnavailableError
from airflow_connect.exactly_once.guarantee import EXACTLY_ONCE
from airflow_connect.exactly_once.journal import Commit, JournalView
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.kafka.admin.dead_letter_queue import QueueLimits
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.planner import LogState, Policy
from airflow_connect.planning.splitting import SplitRules
from airflow_connect.runtime.driver.sink.run import SinkRun
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.stores.store import LeftOver, Outcome
from tests.unit.exactly_once.model_log import Content, content_of, is_bad, is_gap, letter

GO, CRASH, FAIL, CRASH_AFTER, LOSE, DENY = "go", "crash", "fail", "crash_after", "lose", "deny"
TOPIC = "t"
BUCKET = "s3://bucket"
TURN_S = 20.0
T = TypeVar("T")


class Crashed(BaseException):
    """The process is gone."""


@dataclass
class Upload:
    """Something staged."""

    key: str
    content: Content
    run: ModelRun | None
    is_late: bool = False


@dataclass
class World:
    """Kafka and the bucket, as they are, and what they have seen."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    epoch: int = 0
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    manifest: dict[str, Any] | None = None
    dead_letters: list[tuple[Any, ...]] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    followed: set[str] = field(default_factory=set)
    uploads: dict[str, Upload] = field(default_factory=dict)
    objects: dict[str, Content] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)
    has_comparable_etags: bool = True
    manifested: dict[str, set[Content]] = field(default_factory=dict)
    ids: Iterable[int] = field(default_factory=lambda: itertools.count(1))

    def new_id(self) -> str:
        """Unique for ever."""
        return f"{next(iter(self.ids)):06d}"

    def write_manifest(self, manifest: Manifest) -> None:
        """The manifest as JSON, as the journal keeps it."""
        self.manifest = manifest.to_json()
        for file in manifest.files:
            self.manifested.setdefault(file.key, set()).add(content_of(file))


class ModelRun:
    """A run of the connector in a thread that only moves when it is told to."""

    def __init__(self, world: World, *, flush_size: int, flush_on_end: bool, **more: int) -> None:
        """`more`: attributes of `ModelConfig`."""
        self.world = world
        self.config = ModelConfig(self, flush_size, flush_on_end, **more)
        self.waiting_for = ""
        self.is_over = False
        self.was_disturbed = False
        self.is_dead = False
        self.epoch = 0
        self.report: RunReport | None = None
        self.error: ConnectError | None = None
        self.defect: BaseException | None = None
        self._decision = GO
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._await()

    def step(self, decision: str) -> None:
        """Let it do the call that it waits for, and go on to the next one or to its end."""
        self.was_disturbed |= decision != GO
        self._decision = decision
        self._mine.release()
        self._await()

    def finish(self) -> None:
        """Let it go on undisturbed to its end."""
        while not self.is_over:
            self.step(GO)

    def perform(self, name: str, effect: Callable[[], T]) -> T:
        """One turn, called in the run's thread."""
        if self.is_dead:
            raise Crashed
        self.waiting_for = name
        self._theirs.release()
        self._mine.acquire()
        decision = self._decision
        if decision in (CRASH, FAIL):
            self._end(decision, f"{name} did not happen.")
        result = effect()
        if decision == DENY:
            raise FencedError(f"{name} happened, and was denied.")
        if decision in (CRASH_AFTER, LOSE):
            self._end(decision, f"{name} may have happened.")
        return result

    def _end(self, decision: str, message: str) -> None:
        if decision in (CRASH, CRASH_AFTER):
            self.is_dead = True
            raise Crashed
        raise UnavailableError(message)

    def _await(self) -> None:
        assert self._theirs.acquire(timeout=TURN_S), f"the run hangs at {self.waiting_for}"
        if self.defect is not None:
            raise self.defect

    def _run(self) -> None:
        try:
            self.report = SinkRun(self.config, lambda event: None, ModelEngine(self)).execute()  # type: ignore[arg-type]
        except Crashed:
            pass
        except ConnectError as error:
            self.error = error
        except BaseException as error:  # noqa: BLE001 (raised in the test's thread)
            self.defect = error
        self.is_over = True
        self._theirs.release()


class ModelSession:
    """`SinkSession` on the model: the run's own view, through its own epoch."""

    notes: Sequence[str] = ()

    def __init__(self, config: ModelConfig) -> None:
        self._run, self.admin = config.run, None
        self.journal = ModelJournal(self._run)

    def __enter__(self) -> ModelSession:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def tell_progress(self, progress: Mapping[str, Any]) -> str:
        """Nobody looks at pages here."""
        return ""

    def tell_end(self, end: Mapping[str, Any]) -> str:
        """Sensors are no part of the protocol."""
        return ""

    def ensure_group_empty(self) -> None: ...
    def ensure_dead_letter_queue(self) -> None: ...
    def refuse_recreated_topics(self, plan: Any) -> None: ...
    def refuse_changed_offsets(self, plan: Any, state: Any) -> None: ...
    def overwritten_offsets(self, *_: Any) -> tuple[str, ...]: return ()  # fmt: skip

    def gone_topics(self, _: Mapping[str, str]) -> dict[str, str]: return {}  # fmt: skip

    def deleted_topics(self, _: Sequence[str]) -> frozenset[str]: return frozenset()  # fmt: skip

    def queue_limits(self) -> QueueLimits:
        return QueueLimits("dead-letters")

    def log_state(self, limits: RunLimits) -> LogState:
        """A look at the log and at the group."""
        world = self._run.world
        return self._run.perform(
            "look",
            lambda: LogState({TOPIC: "id"}, dict.fromkeys(world.ends, 0), dict(world.ends), dict(world.committed)),
        )


class ModelJournal:
    """`Journal` on the model: transactions of an older epoch are refused."""

    def __init__(self, run: ModelRun) -> None:
        self._run, self._world = run, run.world

    def fence(self) -> None:
        def effect() -> None:
            self._world.epoch += 1
            self._run.epoch = self._world.epoch

        self._run.perform("fence", effect)

    def read(self) -> JournalView:
        world = self._world

        def effect() -> JournalView:
            state = ConnectorState.from_json(world.state) if world.state else None
            return JournalView(state, Manifest.from_json(world.manifest) if world.manifest else None)

        return self._run.perform("read", effect)

    def begin(self, state: ConnectorState) -> None:
        def effect() -> None:
            known = ConnectorState.from_json(self._world.state).leftovers if self._world.state else ()
            is_recovery = state.leftovers == known
            assert self._world.manifest is None or is_recovery, "invariant 6: a run plans while a manifest is open"
            self._world.state = state.to_json()

        self._transaction("begin", effect)

    def write_manifest(self, manifest: Manifest) -> None:
        self._transaction("manifest", lambda: self._world.write_manifest(manifest))

    def commit(self, commit: Commit) -> None:
        world = self._world

        def effect() -> None:
            for tp, offset in commit.offsets.items():
                assert offset >= world.committed.get(tp, 0), f"invariant 2: {tp} goes back to {offset}"
            world.committed.update(commit.offsets)
            world.state = commit.state.to_json()
            world.dead_letters += [(letter.key, letter.value) for letter in commit.dead_letters]
            if commit.summary is not None:
                assert commit.summary["run_id"] in world.followed, "a commit without what follows publishing"
                world.summaries.append(commit.summary["run_id"])
            if commit.closes_manifest:
                world.manifest = None

        self._transaction("commit", effect)

    def close(self) -> None:
        """Nothing is open."""

    def _transaction(self, name: str, effect: Callable[[], None]) -> None:
        def fenced_effect() -> None:
            if self._run.epoch != self._world.epoch:
                raise FencedError("A newer run has taken over.")
            effect()

        self._run.perform(name, fenced_effect)


class ModelPublisher:
    """`Publisher` on the model: completing and aborting are turns."""

    possible_duplicates = False

    def __init__(self, run: ModelRun) -> None:
        self._run, self._world = run, run.world

    def preflight(self) -> None:
        """All is well."""

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        return {file.key: self._run.perform(f"complete {file.key}", lambda f=file: self._complete(f)) for file in files}

    def _complete(self, file: StagedFile) -> Outcome:
        stands = self._world.objects.get(file.key)
        if stands is not None:
            is_same = self._world.has_comparable_etags or self._world.made_by[file.key] == file.token["upload_id"]
            if stands != content_of(file) or not is_same:
                raise PublishConflictError(f"{file.key} holds something else.")
            self._world.uploads.pop(file.token["upload_id"], None)
            return Outcome.ALREADY_PUBLISHED
        upload = self._world.uploads.pop(file.token["upload_id"], None)
        if upload is None:
            return Outcome.LOST
        self._world.objects[file.key] = upload.content
        self._world.made_by[file.key] = file.token["upload_id"]
        return Outcome.PUBLISHED

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        tokens = [str(file.token["upload_id"]) for file in files]
        return sum(self._run.perform(f"abort {token}", lambda t=token: self._abort(t)) for token in tokens)

    def _abort(self, token: str) -> bool:
        upload = self._world.uploads.pop(token, None)
        owner = upload.run if upload else None
        assert owner is None or owner.epoch <= self._run.epoch, "invariant 8: a run discards what a newer one stages"
        return upload is not None

    def list_staged(self, prefixes: Iterable[str]) -> list[LeftOver]:
        starts = tuple(prefixes)
        return self._run.perform(
            "list",
            lambda: [
                LeftOver(u.key, {"upload_id": token}, 0)
                for token, u in self._world.uploads.items()
                if u.key.startswith(starts)
            ],
        )

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class ModelConfig:
    """What `SinkRun` wants to know of a configuration; also the connector of the sink.

    Attributes:
        split_from: smallest range of a partition that several tasks share; 0: they share none.
        most_letters: a task ends each range after so many dead letters; 0: never.
    """

    run: ModelRun
    flush_size: int
    flush_on_end: bool
    max_records: int = 0
    tasks_max: int = 2
    split_from: int = 0
    most_letters: int = 0

    name, store_name = "sink", BUCKET
    counted_role, table_commits, after_tasks = "value", staticmethod(lambda run: ()), staticmethod(lambda: None)
    guarantee = EXACTLY_ONCE
    max_failed_records, deletes_by_null, commits_offsets, keeps_document = None, False, False, False
    dead_letter_topic = ""
    ignored_keys: Sequence[str] = ()
    delivery_notes = sink_notes = ()
    prepare, unfinished = staticmethod(tuple), staticmethod(lambda run: ())
    references = ResolvedReferences()
    spec = RunSpec({}, {})

    def __post_init__(self) -> None:
        self.run_id = self.run.world.new_id()

    @property
    def policy(self) -> Policy:
        return Policy(limits=RunLimits(max_records=self.max_records))

    @property
    def split_rules(self) -> SplitRules:
        is_allowed = self.split_from > 0 and self.flush_on_end
        allowed = Splitting("" if is_allowed else "the model does not allow it", self.flush_size)
        return SplitRules(lambda: allowed, max(1, self.split_from))

    def check_converters(self) -> tuple[str, ...]:
        return ()

    @property
    def worker_spark(self) -> dict[str, str]:
        return {}

    @property
    def sink(self) -> ModelConfig:
        return self

    @property
    def publisher(self) -> ModelPublisher:
        return ModelPublisher(self.run)

    def stop(self) -> None:
        """Nothing is open."""

    def first_offsets(self, *_: object, **_options: bool) -> dict[TopicPartition, int]:
        return {}

    kept_offsets = notes_on_changes = first_offsets

    def plan_state(self, run: PlannedRun) -> PlannedState:
        return PlannedState()

    def state_after(self, run: CopiedRun) -> StateAfter:
        """The model keeps nothing of its own."""
        return StateAfter(run.planned.kept)

    def published(self, run: PublishedRun, publisher: ModelPublisher) -> tuple[str, ...]:
        """What follows publishing is a turn: everything is visible, and the manifest still open."""
        world = self.run.world

        def effect() -> None:
            assert all(file.key in world.objects for file in run.files), "something follows that is not visible"
            world.followed.add(run.run_id)

        self.run.perform("follow", effect)
        return ()

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        pattern = r"d/(?P<topic>t)\+(?P<partition>\d+)\+(?P<start>\d+)"
        return LeftoverPattern(BUCKET, ("d/",), pattern, tuple(ranges))

    def task_settings(self, now_ms: int) -> TaskSettings:
        return TaskSettings({"flush.size": str(self.flush_size)}, {}, flush_on_end=self.flush_on_end)

    def reference_marks(self) -> dict[str, str]:
        return {}

    def without_secrets(self) -> dict[str, str]:
        return {"flush.size": str(self.flush_size), "flush.on.end": str(self.flush_on_end)}

    def with_manifest(self, manifest: Manifest) -> ModelConfig:
        kept = replace(self, flush_size=int(manifest.config["flush.size"]))
        kept.flush_on_end = manifest.config["flush.on.end"] == "True"
        return kept


class ModelEngine:
    """Copies ranges into files of `flush.size` records; staging a file is a turn."""

    may_leave_duplicates = False

    def __init__(self, run: ModelRun) -> None:
        self._run, self._world = run, run.world

    def progress_host(self) -> str:
        return "127.0.0.1"

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        return [self._task(settings, task) for task in tasks]

    def _task(self, settings: TaskSettings, task: TaskPlan) -> TaskReport:
        # Who copies lost files again sets no limit.
        most = self._run.config.most_letters if task.max_dead_letter_bytes else 0
        done = [self._range(settings, planned, most) for planned in task.ranges]
        files = tuple(file for _, some, _ in done for file in some)
        letters = tuple(letter for _, _, some in done for letter in some)
        return TaskReport(task.task, 0, tuple(report for report, _, _ in done), files, letters)

    def _range(
        self, settings: TaskSettings, planned: OffsetRange, most_letters: int
    ) -> tuple[PartitionReport, list[StagedFile], list[dict[str, Any]]]:
        flush_size = int(settings.connector["flush.size"])
        records = [o for o in range(planned.start, planned.end) if not is_gap(o)]
        last = [o for o in records if is_bad(o)][:most_letters][-1:]
        is_short = (
            most_letters > 0 and len([o for o in records if is_bad(o)]) >= most_letters and last[0] + 1 < planned.end
        )
        if is_short:
            planned = replace(planned, end=last[0] + 1)
            records = [o for o in records if o < planned.end]
        good = [o for o in records if not is_bad(o)]
        groups = [good[i : i + flush_size] for i in range(0, len(good), flush_size)]
        commit = planned.end
        if groups and len(groups[-1]) < flush_size and not settings.flush_on_end:
            groups.pop()
            commit = groups[-1][-1] + 1 if groups else planned.start
        files = [self._stage(planned, group[0], group[-1] + 1) for group in groups]
        written = sum(map(len, groups))
        bad = [o for o in records if is_bad(o) and o < commit]
        report = PartitionReport(
            range=planned,
            position=planned.end,
            commit_offset=commit,
            read=len(records),
            written=written,
            dead_lettered=len(bad),
            left=len(records) - written - len(bad),
            stopped_early=STOPPED_BY_DEAD_LETTERS if is_short else "",
        )
        return report, files, [letter(planned, offset) for offset in bad]

    def _stage(self, planned: OffsetRange, start: int, end: int) -> StagedFile:
        token = {"upload_id": self._world.new_id()}
        key = f"d/{planned.topic}+{planned.partition}+{start}"
        draft = StagedFile(key, planned.topic, planned.partition, start, end, 0, 1, token)
        file = replace(draft, records=len(content_of(draft)))

        def effect() -> StagedFile:
            is_late = self._run.epoch != self._world.epoch
            self._world.uploads[token["upload_id"]] = Upload(key, content_of(file), self._run, is_late)
            return file

        return self._run.perform(f"stage {key}", effect)
