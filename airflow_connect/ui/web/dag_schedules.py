"""When Airflow runs DAGs: from its table of DAGs, and from the timetables that it keeps with them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import UnavailableError
from airflow_connect.ui.overview.dag_schedules import DagSchedule
from airflow_connect.ui.web.dag_places import newest_versions

if TYPE_CHECKING:
    from airflow.timetables.base import Timetable
    from sqlalchemy.orm import Session

_ASKED_AT_ONCE = 500
_TIMES_KEPT = 64


class DagSchedules:
    """Schedules of DAGs. A timetable is read again when its DAG has changed. Used by one thread at a time."""

    def __init__(self) -> None:
        """Reads nothing."""
        self._known: dict[str, tuple[str, _Times]] = {}

    def read(self, dag_ids: Collection[str]) -> dict[str, DagSchedule]:
        """The schedules of those DAGs that exist: two questions to the database for up to 500 DAGs.

        Raises:
            UnavailableError: Airflow's database did not answer.
        """
        from airflow.utils.session import create_session
        from sqlalchemy.exc import SQLAlchemyError

        found: dict[str, DagSchedule] = {}
        wanted = sorted(dag_ids)
        try:
            with create_session() as session:
                for begin in range(0, len(wanted), _ASKED_AT_ONCE):
                    found |= self._read(session, wanted[begin : begin + _ASKED_AT_ONCE])
        except SQLAlchemyError as error:
            raise UnavailableError(
                f"Airflow's database did not say when DAGs run ({type(error).__name__}), so it is not known which of"
                " their connectors are late."
            ) from error
        self._known = {dag_id: known for dag_id, known in self._known.items() if dag_id in found}
        return found

    def _read(self, session: Session, dag_ids: list[str]) -> dict[str, DagSchedule]:
        from airflow.models.dag import DagModel
        from sqlalchemy import select

        columns = DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after
        query = select(*columns).where(DagModel.dag_id.in_(dag_ids), DagModel.is_stale.is_(False))
        rows = session.execute(query).all()
        self._refresh(session, [dag_id for dag_id, _, next_run in rows if next_run is not None])
        return {dag_id: self._schedule(dag_id, bool(paused), next_run) for dag_id, paused, next_run in rows}

    def _schedule(self, dag_id: str, is_paused: bool, next_run: datetime | None) -> DagSchedule:
        if next_run is None:
            return DagSchedule(dag_id, is_paused)
        next_ms = round(next_run.timestamp() * 1000)
        if dag_id not in self._known:
            return DagSchedule(dag_id, is_paused, next_ms, problem=_unknown(dag_id, "Airflow does not keep it"))
        times = self._known[dag_id][1]
        return DagSchedule(dag_id, is_paused, next_ms, times.two_after, times.problem)

    def _refresh(self, session: Session, dag_ids: list[str]) -> None:
        """Read the timetables of DAGs that are new or have changed."""
        from airflow.models.dag import DagModel
        from airflow.models.serialized_dag import SerializedDagModel
        from sqlalchemy import select

        newest = session.execute(newest_versions().where(DagModel.dag_id.in_(dag_ids)))
        for row_id, dag_id, mark in newest.all():
            if self._known.get(dag_id, ("",))[0] != mark:
                row = session.scalars(select(SerializedDagModel).where(SerializedDagModel.id == row_id)).one()
                self._known[dag_id] = mark, _Times(dag_id, row.data or {})
                session.expunge(row)


class _Times:
    """The times of one DAG's timetable.

    Attributes:
        problem: why they are not known, or "".
    """

    def __init__(self, dag_id: str, serialized: dict[str, Any]) -> None:
        self._dag_id, self.problem = dag_id, ""
        self._timetable: Timetable | None = None
        self.two_after = lru_cache(maxsize=_TIMES_KEPT)(self._two_after)
        try:
            from airflow.serialization.decoders import decode_timetable

            self._timetable = decode_timetable(serialized["dag"]["timetable"])
        except Exception as error:  # noqa: BLE001 (a timetable of a plugin may raise anything; the page says so)
            self._fail(error)
        self._two_after(time.time_ns() // 1_000_000)

    def _two_after(self, at_ms: int) -> tuple[int, ...]:
        if self._timetable is None or not self._timetable.periodic:
            return ()
        try:
            return tuple(_times(self._timetable, at_ms))
        except Exception as error:  # noqa: BLE001 (as above)
            self._fail(error)
            return ()

    def _fail(self, error: Exception) -> None:
        self._timetable, self.problem = None, _unknown(self._dag_id, f"{type(error).__name__}: {error}")


def _times(timetable: Timetable, after_ms: int) -> Iterator[int]:
    """The next two times after a moment, as if a run for the time until then had just been created."""
    import pendulum
    from airflow.timetables.base import DagRunInfo, TimeRestriction

    end = pendulum.from_timestamp(after_ms / 1000)
    # Timetables of data intervals begin the next interval where this one ends, unless that is before its begin.
    info: DagRunInfo | None = DagRunInfo.interval(end.subtract(years=10), end)
    unrestricted = TimeRestriction(earliest=None, latest=None, catchup=True)
    for _ in range(2):
        info = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=unrestricted)
        if info is None:
            return
        yield round(info.run_after.timestamp() * 1000)


def _unknown(dag_id: str, why: str) -> str:
    return f"The schedule of DAG {dag_id} is not known here ({why})."
