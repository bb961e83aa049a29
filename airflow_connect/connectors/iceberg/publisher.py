"""Commits staged files: one snapshot for each table and run, whatever the catalog answers. Runs on the driver only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
from airflow_connect.connectors.iceberg import snapshots
from airflow_connect.connectors.iceberg.catalogs import check_commits, close_catalog, translate, translated
from airflow_connect.connectors.iceberg.chain import PREFIX, Chain, property_name, snapshot_id
from airflow_connect.connectors.iceberg.listing import loaded, tables_of
from airflow_connect.connectors.iceberg.old_metadata import delete_old_metadata
from airflow_connect.connectors.iceberg.open_tables import load_table
from airflow_connect.connectors.iceberg.stored_files import StoredFiles
from airflow_connect.connectors.iceberg.tables import MAIN
from airflow_connect.counting import plural
from airflow_connect.errors import (
    AccessError,
    ConnectError,
    IcebergError,
    NothingPublishedError,
    PublishConflictError,
    UnavailableError,
)
from airflow_connect.retrying import Backoff, Jitter, Retry

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from airflow_connect.connectors.iceberg.maintenance import Keeping, TableExpiry
    from airflow_connect.connectors.iceberg.tables import IcebergConfig

COMMIT = "commit"
"""Member of the token of one file of each table: what the commit of the table adds."""
MOST_OFFSETS_BYTES = 2000
"""Longest text of offsets in a snapshot's summary: each commit rewrites the summaries of all snapshots."""
_BACKOFF = Backoff(0.1, longest_s=2.0, jitter=Jitter.HALF)


class IcebergPublisher:
    """What makes data files visible."""

    possible_duplicates = False

    def __init__(
        self, connector: str, config: IcebergConfig, open_catalog: Callable[[], Catalog], *, keeps: bool
    ) -> None:
        """Opens nothing yet.

        Args:
            connector: its name.
            config: of the sink.
            open_catalog: opens the catalog.
            keeps: never delete a staged file: no manifest in Kafka says which commits may still be on their way.
        """
        self._connector, self._config, self._keeps = connector, config, keeps
        self._open_catalog = open_catalog
        self._opened: Catalog | None = None
        self._prepared: set[int] = set()

    @property
    def _catalog(self) -> Catalog:
        if self._opened is None:
            self._opened = self._open_catalog()
        return self._opened

    def preflight(self) -> None:
        """Check that the catalog answers, and that tables with known names can be written to.

        Raises:
            ConnectError: what is wrong.
        """
        check_commits(self._catalog, self._config.tables)
        for name in self._config.tables:
            table = self.table(name)
            if table is None:
                if not self._config.creates:
                    raise no_table(name)
                continue
            check_branch(table, name, self._config.settings_of(name).branch)
        if not self._config.tables:
            with translated("listing namespaces"):
                self._catalog.list_namespaces()

    # --- before the point of no return ----------------------------------------------------------------------------

    def prepare(self, files: Sequence[StagedFile], run_id: str) -> list[StagedFile]:
        """Write the manifests of a run's snapshots, and choose the snapshots' ids.

        Returns:
            The files, with short tokens; one of each table holds what the commit adds.

        Raises:
            ConnectError: a table was replaced meanwhile, or the catalog or its file system refuses.
        """
        prepared = {}
        for name, own in by_table(files).items():
            commit = self._prepared_commit(name, own, run_id)
            self._prepared.add(commit["snapshot"])
            prepared[own[0].key] = commit
        made = []
        for file in files:
            token = {"path": file.token["path"], "table": file.token["table"]}
            if file.key in prepared:
                token[COMMIT] = prepared[file.key]
            made.append(replace(file, token=token))
        return made

    def _prepared_commit(self, name: str, files: Sequence[StagedFile], run_id: str) -> dict[str, Any]:
        table, branch = load_table(self._catalog, name), self._config.settings_of(name).branch
        table_uuid = str(table.metadata.table_uuid)
        if any(file.token["uuid"] != table_uuid for file in files):
            raise IcebergError(
                f"Table {name} was dropped and created again while the run wrote files for it.",
                code="iceberg.replaced",
                suggestion="Nothing was published. Run again.",
            )
        check_branch(table, name, branch)
        chosen = snapshot_id(run_id, table_uuid, branch)
        with translated(f"writing the manifest of table {name}"):
            manifests = snapshots.write_manifests(table, files, chosen, run_id)
            summary = snapshots.summary_of(table, files)
        summary |= {f"{PREFIX}connector": self._connector, f"{PREFIX}run-id": run_id, **offsets_of(files)}
        return {
            "table": name,
            "uuid": table_uuid,
            "location": table.location(),
            "branch": branch,
            "run": run_id,
            "snapshot": chosen,
            "schema": table.metadata.current_schema_id,
            "previous": Chain.of(table.properties, self._connector, branch).last,
            "manifests": manifests,
            "summary": summary,
        }

    # --- publish --------------------------------------------------------------------------------------------------

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Commit each table, several at a time; idempotent.

        Raises:
            NothingPublishedError: files are gone, and no table has been committed.
            PublishConflictError: another connector of this name has committed to a table.
            UnavailableError: the catalog did not answer in time; publishing again continues.
        """
        tables = by_table(files)
        commits = {name: commit_of(name, own) for name, own in tables.items()}
        missing = self._missing(tables, commits)
        run_id = next(iter(commits.values()))["run"]
        if missing and len(missing) == len(tables):
            raise NothingPublishedError(
                f"Run {run_id} was to commit {plural(len(tables), 'table')}, but {' and '.join(missing.values())}.",
                suggestion="Its manifest is closed without its offsets, and its records are copied again.",
            )
        outcomes: dict[str, Outcome] = {file.key: Outcome.LOST for name in missing for file in tables[name]}
        done = 0
        with ThreadPoolExecutor(max(1, self._config.commit_threads), "commit") as pool:
            waiting = {name: pool.submit(self._commit, commits[name]) for name in tables if name not in missing}
            for name, future in waiting.items():
                outcome = future.result()
                outcomes.update((file.key, outcome) for file in tables[name])
                done += len(tables[name])
                progress(done)
        return outcomes

    def _missing(self, tables: Mapping[str, Sequence[StagedFile]], commits: Mapping[str, Any]) -> dict[str, str]:
        """Tables that cannot be committed any more, and why. What this process has prepared itself is there."""
        found = {}
        for name, commit in commits.items():
            if commit["snapshot"] in self._prepared:
                continue
            table = self.table(name)
            if table is None or str(table.metadata.table_uuid) != commit["uuid"]:
                found[name] = f"table {name} was dropped, or dropped and created again"
            elif not self._is_published(table, commit) and (gone := self._gone(table, tables[name], commit)):
                found[name] = f"{plural(len(gone), 'file')} of table {name} {'is' if len(gone) == 1 else 'are'} gone"
                found[name] += f", such as {gone[0]}"
        return found

    @staticmethod
    def _gone(table: Table, files: Sequence[StagedFile], commit: Mapping[str, Any]) -> list[str]:
        sizes = {file.token["path"]: file.size_bytes for file in files}
        sizes |= {one["path"]: one["length"] for one in commit["manifests"]}
        return StoredFiles(table).missing(sizes)

    def _is_published(self, table: Table, commit: Mapping[str, Any]) -> bool:
        """Whether the snapshot of a commit has been added to a table, even if it has expired since."""
        if table.metadata.snapshot_by_id(commit["snapshot"]) is not None:
            return True
        return commit["run"] in Chain.of(table.properties, self._connector, commit["branch"]).runs

    def _commit(self, commit: Mapping[str, Any]) -> Outcome:
        """Add the snapshot. Whatever an attempt ends with, except success, the table is looked at before the next.

        Raises:
            PublishConflictError: another connector of this name has committed to the table.
            ConnectError: the catalog refuses, or did not answer in time.
        """
        retry, outcome = Retry(_BACKOFF, within_s=self._config.commit_timeout_ms / 1000), Outcome.ALREADY_PUBLISHED
        while True:
            try:
                with translated(f"loading table {commit['table']}"):
                    table = self._catalog.load_table(commit["table"])
                if self._is_published(table, commit):
                    return outcome
                self._refuse_conflict(table, commit)
                outcome = Outcome.PUBLISHED
                self._send(table, commit)
                return outcome
            except (AccessError, PublishConflictError):
                raise
            except Exception as error:
                if not retry.pause():
                    raise _unpublished(error, commit) from error

    def _refuse_conflict(self, table: Table, commit: Mapping[str, Any]) -> None:
        name, branch = commit["table"], commit["branch"]
        if str(table.metadata.table_uuid) != commit["uuid"]:
            raise PublishConflictError(
                f"Table {name} was dropped and created again before run {commit['run']} was committed to it.",
                code="iceberg.replaced",
                suggestion="The next run copies its records again, unless another table has been committed already.",
            )
        last = Chain.of(table.properties, self._connector, branch).last
        if last == commit["previous"]:
            return
        key = property_name(self._connector, branch)
        raise PublishConflictError(
            f"Table {name} was committed by run {last or '(none)'} last, but run {commit['run']} follows"
            f" {commit['previous'] or '(none)'}: two connectors with the name {self._connector} write to it, or its"
            " metadata was set back.",
            code="iceberg.chain",
            suggestion="Give one of them another name. If there is only this one, check which rows the table has; then"
            f' set the table\'s property {key} to {{"runs":["{commit["previous"]}"]}}, and run again.',
        )

    def _send(self, table: Table, commit: Mapping[str, Any]) -> None:
        from pyiceberg.table.refs import SnapshotRefType
        from pyiceberg.table.update import (
            AddSnapshotUpdate,
            AssertRefSnapshotId,
            AssertTableUUID,
            SetPropertiesUpdate,
            SetSnapshotRefUpdate,
        )

        branch, chosen = commit["branch"], commit["snapshot"]
        head = table.metadata.snapshot_by_name(branch)
        new = snapshots.new_snapshot(table, commit)
        chain = Chain.of(table.properties, self._connector, branch).after(commit["run"])
        expected: dict[str, Any] = {"ref": branch, "snapshot_id": head.snapshot_id if head else None}
        moved: dict[str, Any] = {"snapshot_id": chosen, "ref_name": branch, "type": SnapshotRefType.BRANCH}
        requirements = (AssertTableUUID(uuid=table.metadata.table_uuid), AssertRefSnapshotId(**expected))
        updates = (
            AddSnapshotUpdate(snapshot=new),
            SetSnapshotRefUpdate(**moved),
            SetPropertiesUpdate(updates={property_name(self._connector, branch): chain}),
        )
        done = self._catalog.commit_table(table, requirements, updates)
        delete_old_metadata(self._catalog, table, done)

    # --- leftovers ------------------------------------------------------------------------------------------------

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Delete files that no snapshot has; returns how many existed."""
        if self._keeps:
            return 0
        deleted = 0
        paths: dict[str, list[str]] = {}
        for file in files:
            paths.setdefault(file.token["table"], []).append(file.token["path"])
        for name, own in paths.items():
            table = loaded(self._catalog, name)
            if table is not None:
                deleted += StoredFiles(table).delete(own, self._chains(table), snapshot_id)
        return deleted

    def list_staged(self, prefixes: Iterable[str]) -> Iterator[LeftOver]:
        """Files of runs that are in no snapshot; a prefix is `<table>#<run>`, with `*` for every table."""
        if self._keeps:
            return
        for prefix in prefixes:
            name, _, run_id = prefix.partition("#")
            for table in self._tables() if name == "*" else (loaded(self._catalog, name),):
                if table is None:
                    continue
                for path in StoredFiles(table).of_run(run_id, self._chains(table), snapshot_id):
                    yield LeftOver(path, {"path": path, "table": ".".join(table.name())})

    def _chains(self, table: Table) -> dict[str, Chain]:
        """The chain of each branch that this connector may have committed to."""
        found = {MAIN, *table.metadata.refs, self._config.settings_of(".".join(table.name())).branch}
        return {branch: Chain.of(table.properties, self._connector, branch) for branch in found}

    def _tables(self) -> Iterator[Table]:
        return tables_of(self._catalog, self._config.dynamic_pattern)

    def table(self, name: str) -> Table | None:
        """A table; None if it does not exist.

        Raises:
            ConnectError: it cannot be written to, or the catalog refuses, or does not answer.
        """
        try:
            return load_table(self._catalog, name)
        except IcebergError as error:
            if error.code == "iceberg.no_table":
                return None
            raise

    # --- maintenance ----------------------------------------------------------------------------------------------

    @staticmethod
    def snapshots_of(files: Sequence[StagedFile]) -> set[int]:
        """Ids of the snapshots that a manifest names."""
        return {commit_of(name, own)["snapshot"] for name, own in by_table(files).items()}

    def expire(self, keeping: Keeping, *, dry_run: bool) -> list[TableExpiry]:
        """Expire snapshots of every table that exists; with dynamic tables, of those that this connector has filled.

        Raises:
            ConnectError: the catalog refuses, or does not answer. Tables before that one are done.
        """
        from airflow_connect.connectors.iceberg.maintenance import expire

        names = sorted(".".join(table.name()) for table in self._filled() if table is not None)
        return [expire(self._catalog, name, keeping, dry_run=dry_run) for name in names]

    def _filled(self) -> Iterator[Table | None]:
        if self._config.tables:
            yield from map(self.table, self._config.tables)
            return
        for table in self._tables():
            if any(chain.runs for chain in self._chains(table).values()):
                yield table

    def close(self) -> None:
        """Release the catalog's connections; idempotent."""
        opened, self._opened = self._opened, None
        if opened is not None:
            close_catalog(opened)


def by_table(files: Iterable[StagedFile]) -> dict[str, list[StagedFile]]:
    """Files by the name of their table."""
    found: dict[str, list[StagedFile]] = {}
    for file in files:
        found.setdefault(file.token["table"], []).append(file)
    return found


def commit_of(name: str, files: Sequence[StagedFile]) -> Mapping[str, Any]:
    """What the commit of a table adds."""
    for file in files:
        if COMMIT in file.token:
            commit: Mapping[str, Any] = file.token[COMMIT]
            return commit
    raise IcebergError(
        f"The manifest of the run does not say what the commit of table {name} adds.",
        code="iceberg.manifest",
        suggestion="Report this message.",
    )


def spans_of(files: Sequence[StagedFile]) -> dict[TopicPartition, tuple[int, int]]:
    """The first offset and the last one plus one of the records in files, by topic and partition."""
    spans: dict[TopicPartition, tuple[int, int]] = {}
    for file in files:
        tp = TopicPartition(file.topic, file.partition)
        start, end = spans.get(tp, (file.start, file.end))
        spans[tp] = min(start, file.start), max(end, file.end)
    return dict(sorted(spans.items()))


def offsets_of(files: Sequence[StagedFile]) -> dict[str, str]:
    """Which records a snapshot holds, as a property of its summary; none if it would be too long."""
    text = ",".join(f"{tp}:{start}-{end}" for tp, (start, end) in spans_of(files).items())
    return {f"{PREFIX}offsets": text} if len(text) <= MOST_OFFSETS_BYTES else {}


def no_table(name: str) -> IcebergError:
    """A table that must exist does not."""
    return IcebergError(
        f"The catalog does not have table {name}.",
        code="iceberg.no_table",
        suggestion="Create it, or set iceberg.tables.auto-create-enabled=true.",
    )


def check_branch(table: Table, name: str, branch: str) -> None:
    """Refuse a branch that cannot be committed to.

    Raises:
        IcebergError: it is a tag, or the table is empty and it is not `main`.
    """
    from pyiceberg.table.refs import SnapshotRefType

    ref = table.metadata.refs.get(branch)
    if ref is not None and ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise IcebergError(
            f"{branch} is a tag of table {name}, not a branch.",
            code="iceberg.branch",
            suggestion="Name a branch in commit-branch.",
            config_path="iceberg.tables.default-commit-branch",
        )
    if branch != MAIN and not table.metadata.snapshots:
        raise IcebergError(
            f"Table {name} has no snapshot, so it cannot have the branch {branch}.",
            code="iceberg.branch",
            suggestion="Commit something to main first, such as an empty append.",
            config_path="iceberg.tables.default-commit-branch",
        )


def _unpublished(error: Exception, commit: Mapping[str, Any]) -> ConnectError:
    translated_error = error if isinstance(error, ConnectError) else translate(error, f"committing {commit['table']}")
    return UnavailableError(
        f"Run {commit['run']} was not committed to table {commit['table']} in time:"
        f" {translated_error.message.removesuffix('.')}.",
        code="iceberg.not_committed",
        suggestion="Nothing is lost: the next run looks whether the commit has landed, and commits otherwise.",
    )
