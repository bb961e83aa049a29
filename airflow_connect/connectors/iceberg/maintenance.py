"""Expiring snapshots of tables, except those that runs, branches, tags and readers still need.

Only metadata shrinks: pyiceberg (version 0.12) deletes no files of expired snapshots. They are orphans, which an engine
removes.

What runs need: the snapshots of the runs in the chain, by which a sweep knows the files that are in use; those of an
open manifest; and all since the last run, because a run looks whether its predecessor is an ancestor of the branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.connectors.iceberg.catalogs import translate, translated
from airflow_connect.connectors.iceberg.chain import PREFIX, Chain, snapshot_id
from airflow_connect.connectors.iceberg.old_metadata import delete_old_metadata
from airflow_connect.connectors.iceberg.tables import MAIN
from airflow_connect.errors import AccessError, ConnectError, UnavailableError
from airflow_connect.retrying import Backoff, Jitter, Retry

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

DAY_MS = 24 * 60 * 60 * 1000
_AGE, _LEAST = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"
_DEFAULT_AGE_MS, _DEFAULT_LEAST = 5 * DAY_MS, 1
_CHAIN = ".published"
_BACKOFF = Backoff(0.1, longest_s=2.0, jitter=Jitter.HALF)
_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Keeping:
    """What stays, whatever else needs it.

    Attributes:
        now_ms: the time.
        age_ms: younger snapshots stay; None: `history.expire.max-snapshot-age-ms` of the table, 5 days by default.
        least: of each branch, this many stay; None: `history.expire.min-snapshots-to-keep` of the table, 1 by default.
        open_snapshots: those of an open manifest.
    """

    now_ms: int
    age_ms: int | None = None
    least: int | None = None
    open_snapshots: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TableExpiry(JsonDocument):
    """What was expired, or would be.

    Attributes:
        table: its name.
        snapshots: how many there were.
        expired: their ids, as text, the oldest first.
        young: how many stay because of their age.
        needed: how many are older, and stay because a branch, a tag or a run needs them.
    """

    table: str
    snapshots: int
    expired: tuple[str, ...] = ()
    young: int = 0
    needed: int = 0


def expire(catalog: Catalog, name: str, keeping: Keeping, *, dry_run: bool) -> TableExpiry:
    """Expire the snapshots of one table that are not needed; tries again after a concurrent commit.

    Raises:
        ConnectError: the catalog refuses, or does not answer in time. What has been expired stays so.
    """
    from pyiceberg.table.update import RemoveSnapshotsUpdate

    retry, removed, before = Retry(_BACKOFF, within_s=_WITHIN_S), dict[int, None](), 0
    while True:
        try:
            with translated(f"loading table {name}"):
                table = catalog.load_table(name)
            before = before or len(table.metadata.snapshots)
            found = expirable(table, keeping)
            removed |= dict.fromkeys(found)
            if found and not dry_run:
                wanted: dict[str, Any] = {"snapshot_ids": found}
                update = RemoveSnapshotsUpdate(**wanted)
                done = catalog.commit_table(table, tuple(_requirements(table)), (update,))
                delete_old_metadata(catalog, table, done)
            there = {one.snapshot_id: one for one in table.metadata.snapshots}
            young = sum(_is_young(one, keeping, table) for key, one in there.items() if key not in found)
            return TableExpiry(
                table=name,
                snapshots=before,
                # What an attempt with a lost answer has expired is no longer there.
                expired=tuple(str(one) for one in removed if one in found or one not in there),
                young=young,
                needed=len(there) - len(found) - young,
            )
        except AccessError:
            raise
        except Exception as error:
            if not retry.pause():
                raise _unfinished(error, name) from error


def _requirements(table: Table) -> Iterator[Any]:
    """That the table is the same one, and that no branch or tag was moved to a snapshot that is to be expired."""
    from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

    yield AssertTableUUID(uuid=table.metadata.table_uuid)
    for name, ref in table.metadata.refs.items():
        expected: dict[str, Any] = {"ref": name, "snapshot_id": ref.snapshot_id}
        yield AssertRefSnapshotId(**expected)


def _unfinished(error: Exception, name: str) -> ConnectError:
    found = error if isinstance(error, ConnectError) else translate(error, f"expiring snapshots of {name}")
    if not isinstance(found, UnavailableError):
        return found
    return UnavailableError(
        f"The snapshots of table {name} were not expired in time: {found.message.removesuffix('.')}.",
        code="iceberg.not_expired",
        suggestion="Run the task again: what has been expired is not there any more.",
    )


def expirable(table: Table, keeping: Keeping) -> list[int]:
    """Ids of the snapshots that nothing needs, the oldest first."""
    kept = {ref.snapshot_id for ref in table.metadata.refs.values()} | keeping.open_snapshots | _of_runs(table)
    kept |= {one.snapshot_id for one in table.metadata.snapshots if _is_young(one, keeping, table)}
    for name, branch in _branches(table).items():
        kept |= _needed_of_branch(table, name, branch, keeping)
    return [one.snapshot_id for one in table.metadata.snapshots if one.snapshot_id not in kept]


def _is_young(snapshot: Snapshot, keeping: Keeping, table: Table) -> bool:
    age_ms = int(table.properties.get(_AGE, _DEFAULT_AGE_MS)) if keeping.age_ms is None else keeping.age_ms
    return snapshot.timestamp_ms > keeping.now_ms - age_ms


def _branches(table: Table) -> dict[str, Any]:
    from pyiceberg.table.refs import SnapshotRefType

    return {name: ref for name, ref in table.metadata.refs.items() if ref.snapshot_ref_type == SnapshotRefType.BRANCH}


def _needed_of_branch(table: Table, name: str, ref: Any, keeping: Keeping) -> set[int]:
    """The newest ones, and all since the last run of each connector that commits to the branch."""
    least = int(table.properties.get(_LEAST, _DEFAULT_LEAST)) if keeping.least is None else keeping.least
    least = max(least, ref.min_snapshots_to_keep or 0)
    ancestors = list(_ancestors(table, ref.snapshot_id))
    last_runs = {_id_of(table, chain.last, name) for chain in _chains(table, name) if chain.runs}
    since = max((n for n, one in enumerate(ancestors, 1) if one.snapshot_id in last_runs), default=0)
    needed = {one.snapshot_id for one in ancestors[: max(least, since)]}
    if ref.max_snapshot_age_ms:  # Of the branch itself; it may be more than for the table.
        needed |= {one.snapshot_id for one in ancestors if one.timestamp_ms > keeping.now_ms - ref.max_snapshot_age_ms}
    return needed


def _ancestors(table: Table, head: int | None) -> Iterator[Snapshot]:
    seen: set[int] = set()
    while head is not None and head not in seen and (one := table.metadata.snapshot_by_id(head)) is not None:
        seen.add(head)
        yield one
        head = one.parent_snapshot_id


def _of_runs(table: Table) -> set[int]:
    """Snapshots of the last runs of every connector, on every branch."""
    names = {MAIN, *table.metadata.refs}
    return {_id_of(table, run, name) for name in names for chain in _chains(table, name) for run in chain.runs}


def _chains(table: Table, branch: str) -> Iterable[Chain]:
    """The chain of each connector; its name is between the prefix and the branch."""
    last = f".{branch}{_CHAIN}"
    for name in table.properties:
        if name.startswith(PREFIX) and name.endswith(last):
            yield Chain.of(table.properties, name.removeprefix(PREFIX).removesuffix(last), branch)


def _id_of(table: Table, run: str, branch: str) -> int:
    return snapshot_id(run, str(table.metadata.table_uuid), branch)
