"""The steps after filling in the form of a new connector: test access, look at records, plan, take it as a DAG.

Each is asked for by a button. `shown` of the form names those whose answers the page already has; a change of the
configuration by a script begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.runtime.driver.class_of_connector import is_source
from airflow_connect.runtime.reporting.texts import format_bytes, format_count, format_seconds, plural
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.asking import Look
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.views.dag_file import DagFiles, dag_files
from airflow_connect.ui.pages.views.form import CLASS, NAME, Checked

if TYPE_CHECKING:
    from airflow_connect.documents.run import Plan
    from airflow_connect.observe.inspecting.doctor import Check
    from airflow_connect.observe.inspecting.samples import Sample, Samples
    from airflow_connect.ui.overview.model import Run

TEST, RECORDS, PLAN, DAG = "test", "records", "plan", "dag"
ALL = (TEST, RECORDS, PLAN, DAG)
TYPING = "look"
WAIT_S = 12.0
"""How long the page waits without a script, which could ask again."""
MOST_TEXT = 300
Facts = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A record that was looked at, as text."""

    where: str
    before: str
    after: str
    outcome: str
    error: str


@dataclass(frozen=True, slots=True)
class Steps:
    """What is known of each step; None: it was not asked for.

    Attributes:
        shown: the steps with an answer, or with one on its way.
        is_source: its records cannot be looked at before it runs.
        facts: numbers of the plan: a name and a text each.
        bases: what the estimates among them come from.
    """

    shown: tuple[str, ...] = ()
    is_source: bool = False
    checks: Seen[list[Check]] | None = None
    samples: Seen[Samples] | None = None
    plan: Seen[Plan] | None = None
    dag: DagFiles | None = None
    facts: tuple[tuple[str, str], ...] = ()
    bases: tuple[str, ...] = ()

    @property
    def ordered_checks(self) -> list[Check]:
        """The failed ones first."""
        return sorted((self.checks.value if self.checks else None) or [], key=lambda check: check.is_ok)

    @property
    def rows(self) -> list[SampleRow]:
        """The records."""
        found = self.samples.value if self.samples else None
        return [_row(sample) for sample in found.records] if found else []

    @property
    def told(self) -> str:
        """What the last answers say, for a screen reader."""
        texts = []
        if self.checks is not None and self.checks.value is not None and not self.checks.is_waiting:
            failed = sum(not check.is_ok for check in self.checks.value)
            texts.append(f"{plural(len(self.checks.value), 'check')}, {failed} failed.")
        if self.samples is not None and self.samples.value is not None:
            failed = sum(row.outcome == "failed" for row in self.rows)
            texts.append(f"{plural(len(self.rows), 'record')} looked at, {failed} would fail.")
        return " ".join(texts)


def steps_of(call: Call, checked: Checked, *, is_live: bool = False) -> Steps:
    """The answers to the steps that the form asks for. Nothing is registered or copied.

    Args:
        call: with the form: `do` is the button, `shown` the steps that it shows.
        checked: its configuration.
        is_live: a script asks, and will ask again for what is not ready.
    """
    pressed = {"check": PLAN}.get(call.field_of("do"), call.field_of("do"))
    before = call.field_of("shown").split(",") if pressed != TYPING else []
    shown = tuple(step for step in ALL if step == pressed or step in before)
    if not checked.is_ready:
        return Steps()
    look = Look(0.1 if is_live else WAIT_S)
    anew = Look(look.wait_s, is_new=True)
    how = {step: anew if step == pressed else look for step in ALL}
    is_source = _is_source(checked.config)
    name, console = str(checked.config[NAME]), call.console
    checks = console.doctor(call.conn_id, name, checked.config, how[TEST]) if TEST in shown else None
    samples = None
    if not is_source and (RECORDS in shown or (PLAN in shown and pressed != "check")):
        samples = console.samples(call.conn_id, name, checked.config, how[RECORDS])
    plan = console.plan(call.conn_id, name, checked.config, how[PLAN]) if PLAN in shown else None
    dag = None
    if DAG in shown:
        dag = dag_files(checked.config, console.installations.argument_of(call.conn_id))
    facts, bases = _facts(call, checked, plan, samples) if plan is not None and plan.value is not None else ([], [])
    return Steps(shown, is_source, checks, samples, plan, dag, tuple(facts), tuple(bases))


def _is_source(config: Mapping[str, str | None]) -> bool:
    """The configuration is ready, so its class can be loaded."""
    return is_source(plugins.resolve_connector(config))


def _row(sample: Sample) -> SampleRow:
    before = f"{_raw(sample.raw_key)}: {_raw(sample.raw_value)}" if sample.raw_key else _raw(sample.raw_value)
    after = ""
    if sample.outcome == "written":
        after = f"{_text(sample.key)}: {_text(sample.value)}" if sample.key is not None else _text(sample.value)
        if sample.topic != sample.where.rpartition("-")[0]:
            after = f"{sample.topic}: {after}"
    return SampleRow(sample.where, before, after, sample.outcome, _short(sample.error, MOST_TEXT))


def _raw(data: bytes | None) -> str:
    """The bytes as text; what is none is escaped."""
    return "null" if data is None else _short(data[: 4 * MOST_TEXT].decode("utf-8", "backslashreplace"), MOST_TEXT)


def _text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return _raw(bytes(value))
    text = value if isinstance(value, str) else json.dumps(value, default=_other, ensure_ascii=False)
    return _short(text, MOST_TEXT)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _other(value: Any) -> str:
    return _raw(bytes(value)) if isinstance(value, (bytes, bytearray)) else str(value)


# --- the plan in numbers ---------------------------------------------------------------------------------------------


def _facts(call: Call, checked: Checked, plan: Seen[Plan], samples: Seen[Samples] | None) -> tuple[Facts, list[str]]:
    """Numbers of the first run, and what the estimates come from. There is no estimate without a basis."""
    assert plan.value is not None
    if plan.value.is_empty:
        return [], []
    facts = [("Tasks", format_count(len(plan.value.tasks)))]
    records = sum(len(r) for r in plan.value.ranges)
    if not records:
        return facts, []
    facts.append(("Records, at most", format_count(records)))
    bases = []
    seen = samples.value if samples else None
    if seen is not None and seen.records:
        mean = sum(sample.size for sample in seen.records) / len(seen.records)
        facts.append(("Bytes in Kafka", f"about {format_bytes(round(records * mean))}"))
        bases.append(f"Bytes: from the keys and values of the {plural(len(seen.records), 'record')} looked at.")
    if seen is not None and seen.records_per_file:
        leaves_rest = str(checked.config.get("flush.on.end") or "").lower() == "false"
        rest = 0 if leaves_rest else seen.records_per_file - 1
        fewest = sum((len(r) + rest) // seen.records_per_file for r in plan.value.ranges)
        facts.append(("Files, at least", format_count(fewest)))
        bases.append("Files: from flush.size and the partitions; each directory of a partitioner adds to them.")
    speed, where = _speed(call, str(checked.config[CLASS]))
    if speed:
        facts.append(("Copying", f"about {format_seconds(records / speed)}"))
        bases.append(f"Time: at the speed of the last runs of {where}, which has the same class.")
    else:
        bases.append("Time: not estimated, because no connector of this class has run in this installation.")
    return facts, bases


def _speed(call: Call, connector_class: str) -> tuple[float, str]:
    """Records per second of the fastest of the last runs of a connector of this class, and its name; else 0."""
    overview = call.seen().value
    if overview is None:
        return 0.0, ""
    simple = _simple(connector_class)
    same = [
        connector
        for connector in overview.connectors.values()
        if connector.config and _simple(str(connector.config.get(CLASS))) == simple
    ]
    speeds = [(_fastest(connector.runs[:5]), connector.name) for connector in same]
    return max(speeds, default=(0.0, ""))


def _fastest(runs: Any) -> float:
    found: list[Run] = [run for run in runs if run.read]
    return max((run.records_per_s or 0.0 for run in found), default=0.0)


def _simple(name: str) -> str:
    return name.rpartition(".")[2].rpartition(":")[2].removesuffix("Connector")
