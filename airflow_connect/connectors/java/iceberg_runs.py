"""What a run of Apache's Iceberg sink checks on the driver, before its tasks and after them.

The plugin loses files silently in some cases; each check below says in which. Kafka Connect has them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.connectors.java.group import WRITTEN_BEFORE
from airflow_connect.connectors.java.iceberg import Announced, ControlTopic, Placed
from airflow_connect.connectors.java.iceberg_names import CONTROL_TOPIC
from airflow_connect.counting import agreeing, names, plural
from airflow_connect.errors import TaskFailedError
from airflow_connect.kafka.admin import consumer_group

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import PlannedRun
    from airflow_connect.documents.run import PartitionReport

_REPLAY = "To copy their records again, set the offsets of the connector back (airflow-connect offsets set)."


@dataclass
class ControlRun:
    """The control topic during one run.

    Attributes:
        control: the topic.
        before: the coordinator's position when the run was planned.
        starts: the ends of the topic then.
        opened: what an earlier run has announced, and no coordinator has read.
        notes: sentences for the report.
        rows: how many records the files of this run have, once `verify` has found all of them in tables.
    """

    control: ControlTopic
    before: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    opened: Announced = field(default_factory=Announced)
    notes: list[str] = field(default_factory=list)
    rows: int = 0

    @classmethod
    def planned(cls, control: ControlTopic, run: PlannedRun) -> ControlRun:
        """Make the coordinator begin at the right place.

        Raises:
            TaskFailedError: its position means nothing in this topic, or what it has not read was deleted.
            NotStoppedError: a coordinator is still a member of its group.
        """
        ranges = control.ranges()
        if not ranges:
            if not run.ranges:
                return cls(control)
            control.create()
            ranges = control.ranges()
        found = cls(control, control.committed(), {number: r.end for number, r in ranges.items()})
        found._refuse_another_topic(run, ranges)
        placed = found._placed(run, ranges)
        if placed:
            control.commit(placed)
            found.before |= placed
        found.opened = Announced.of(control, found.before)
        if found.opened.written and run.ranges:
            found.notes.append(
                f"A run that was ended has left {_amount(found.opened.written)} that the coordinator had not confirmed."
                " This run has it commit those that are in no table yet."
            )
        return found

    def for_tasks(self) -> dict[str, Any]:
        """What tasks need to know when they are done."""
        return {
            "starts": {str(number): offset for number, offset in self.starts.items()},
            "open": {str(number): offset for number, offset in self.opened.ends().items()},
        }

    def kept(self, offsets: Mapping[str, int]) -> dict[str, Any]:
        """What the next run has to know of this one, which has committed everything that it has announced."""
        return {
            "topic": self.control.name,
            "topic_id": self.control.topic_id(),
            "ends": {str(number): r.end for number, r in self.control.ranges().items()},
            "offsets": dict(offsets),
        }

    def verify(self) -> tuple[str, ...]:
        """Check that every file that was announced is in a table; returns notes.

        Raises:
            TaskFailedError: some are not: no coordinator has read of them, or it has left them out.
        """
        found, committed = Announced.of(self.control, self.before), self.control.committed()
        unread = [placed for placed in found.written if placed.offset >= committed.get(placed.partition, -1)]
        if unread:
            raise TaskFailedError(
                f"The tasks have ended before the coordinator of the plugin had committed {_amount(unread)}.",
                code="java.ends_too_early",
                suggestion="Their offsets are committed. The next run finishes them.",
            )
        left_out = found.left_out()
        own = [placed for placed in left_out if placed.offset >= self.starts.get(placed.partition, 0)]
        if own:
            raise TaskFailedError(
                f"The plugin has left out {_amount(own)} of this run, although it has committed their offsets:"
                f" {_tables(own)}. The table was dropped or created again meanwhile, or the control topic"
                f" {self.control.name} is not the one whose offsets the table has.",
                code="java.left_out",
                suggestion=f"The files exist, but are in no table. {_REPLAY}",
            )
        self.rows = sum(
            placed.event.records for placed in found.written if placed.offset >= self.starts.get(placed.partition, 0)
        )
        earlier = [placed for placed in left_out if placed.offset < self.starts.get(placed.partition, 0)]
        if not earlier:
            return ()
        said = (
            f"Of a run that was ended, the plugin has committed nothing of {_amount(earlier)} now: {_tables(earlier)}."
            " Either they were in their table already, or it was dropped or created again, and they are in none."
            f" {_REPLAY}"
        )
        return (said,)

    def counted(self, reports: Sequence[PartitionReport], tables: int | None) -> tuple[str, ...]:
        """Whether the files of this run, after `verify`, have all records that the plugin got; sentences if not.

        Args:
            reports: of the run's partitions.
            tables: how many tables a record goes to (`tables_of_each_record`).
        """
        before = [part.range.topic_partition for part in reports if WRITTEN_BEFORE in part.details]
        if before:
            said = (
                f"How many records the plugin has left out was not counted: of {names(sorted(set(before)))}, some were"
                " written before this run or by another attempt of a task."
            )
            return (said,)
        got, each = sum(part.written for part in reports), tables or 1
        missing, rows = got * each - self.rows, f"{plural(self.rows, 'row')}{_in_tables(each)}"
        if missing > 0:
            number = -(-missing // each)
            what = f"{'' if tables else 'At least '}{plural(number, 'record')}"
            said = (
                f"{what} of the {got:,} that the plugin got {agreeing(number, 'are')} in no table: its files have"
                f" {rows}. It leaves out records without a value, and records that its routing gives to no table"
                " or to one that does not exist, and counts them as written."
            )
            return (said,)
        if missing < 0 and tables:
            said = (
                f"The files of the plugin have {rows}, but it got only {plural(got, 'record')}: look for rows that are"
                " in a table twice."
            )
            return (said,)
        return ()

    def finished(self) -> tuple[str, ...]:
        """A sentence about what a run has left that was ended, once the coordinator has read of it."""
        said = (
            f"A run that was ended had left {_amount(self.opened.written)} that the coordinator had not confirmed. It"
            " has committed those that were in no table."
        )
        return (said,)

    # --- where the coordinator begins -----------------------------------------------------------------------------

    def _refuse_another_topic(self, run: PlannedRun, ranges: Mapping[int, OffsetRange]) -> None:
        """A table stores the offsets of the control topic: new events with smaller ones count as committed already."""
        kept, topic = run.kept, self.control.name
        known = kept.get("topic_id") if kept.get("topic") == topic else ""
        is_other = bool(known) and known != self.control.topic_id()
        behind = {number: at for number, at in self.before.items() if number in ranges and at > ranges[number].end}
        if not is_other and not behind:
            return
        places = [f"{topic}-{number}@{at}, whose end is {ranges[number].end}" for number, at in sorted(behind.items())]
        why = f" The coordinator's position is {names(places)}." if places else ""
        raise TaskFailedError(
            f"The control topic {topic} was deleted and created again.{why} Tables hold offsets of the topic that was"
            " there before, and the plugin would leave new files out because of them.",
            code="java.control_offsets",
            suggestion=f"Set {CONTROL_TOPIC} to a topic with a new name. Files that a killed run had announced in the"
            f" old topic are in no table. {_REPLAY}",
        )

    def _placed(self, run: PlannedRun, ranges: Mapping[int, OffsetRange]) -> dict[int, int]:
        """Positions that must be set. Without one, the plugin begins at the end, behind what a killed run announced."""
        kept = run.kept if run.kept.get("topic") == self.control.name else {}
        ends = {int(number): int(end) for number, end in kept.get("ends", {}).items()}
        missing = [number for number in ranges if number not in self.before]
        placed = self._first_positions(missing, ranges, ends) if missing else {}
        deleted = [number for number, at in self.before.items() if number in ranges and at < ranges[number].start]
        lost = [number for number in deleted if ends.get(number, -1) < ranges[number].start]
        if lost:
            self._judge_deleted(run, kept, {number: ranges[number] for number in lost})
        return {**placed, **{number: ranges[number].start for number in deleted}}

    def _first_positions(
        self, missing: Sequence[int], ranges: Mapping[int, OffsetRange], ends: Mapping[int, int]
    ) -> dict[int, int]:
        """Before everything that was announced after the last commit."""
        starts = {number: max(r.start, ends.get(number, r.start)) for number, r in ranges.items()}
        found = Announced.of(self.control, starts)
        placed = {number: max(starts[number], ranges[number].end) for number in missing}
        for one in found.incomplete():
            if one.partition in placed:
                placed[one.partition] = min(placed[one.partition], one.offset)
        return placed

    def _judge_deleted(self, run: PlannedRun, kept: Mapping[str, Any], lost: Mapping[int, OffsetRange]) -> None:
        """Events were deleted before the coordinator had read them. They matter if they were of this connector."""
        topic = self.control.name
        places = names([f"{topic}-{number} before {r.start}" for number, r in sorted(lost.items())])
        known = kept.get("offsets")
        if known is None:
            self.notes.append(
                f"Events of the control topic were deleted before the coordinator had read them: {places}. If a run or"
                " a worker was killed before that, files that it had announced are in no table."
            )
            return
        now = consumer_group.read_committed_offsets(self.control.admin, self.control.group, run.partitions)
        moved = [tp for tp, offset in now.items() if offset > known.get(str(tp), offset)]
        if not moved:
            return
        where = [f"{tp} from {known[str(tp)]} to {now[tp]}" for tp in sorted(moved)]
        raise TaskFailedError(
            f"Events of the control topic were deleted before the coordinator had read them: {places}. A run that was"
            f" killed, or a worker, has committed offsets since the last complete run ({names(where)}), so files that"
            " are in no table may be among what was deleted.",
            code="java.control_offsets",
            suggestion=f"Compare the table with the topic. {_REPLAY} Afterwards, set the offsets of the group"
            f" {self.control.coordinator} in the topic {topic} to its beginning, and give the topic a retention that is"
            " longer than the longest pause of the connector.",
        )


def _amount(written: Sequence[Placed]) -> str:
    files, records = sum(one.event.files for one in written), sum(one.event.records for one in written)
    return f"{plural(files, 'file')} with {plural(records, 'record')}"


def _in_tables(count: int) -> str:
    return f" in {count} tables" if count > 1 else ""


def _tables(written: Sequence[Placed]) -> str:
    counted: dict[str, int] = {}
    for one in written:
        counted[str(one.event.table)] = counted.get(str(one.event.table), 0) + one.event.files
    return names([f"{plural(files, 'file')} of {table}" for table, files in sorted(counted.items())])
