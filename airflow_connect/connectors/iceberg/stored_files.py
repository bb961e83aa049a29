"""Files of a table in its file system: whether they are there, which a run has left, and deleting those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.iceberg.catalogs import translated
from airflow_connect.connectors.iceberg.data_files import run_folder

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from airflow_connect.connectors.iceberg.chain import Chain

SnapshotId = Callable[[str, str, str], int]
"""(run, uuid of the table, branch) -> id of the snapshot that the run adds."""
_AT_ONCE = 16


class StoredFiles:
    """The files of one table."""

    def __init__(self, table: Table) -> None:
        """Sends no request."""
        self._table = table

    def missing(self, sizes: Mapping[str, int]) -> list[str]:
        """Paths that are gone, or have another size.

        Raises:
            ConnectError: the file system refuses, or does not answer.
        """

        def is_there(path: str) -> bool:
            found = self._table.io.new_input(path)
            return found.exists() and len(found) == sizes[path]

        with translated(f"looking for the files of {self._name}"), ThreadPoolExecutor(_AT_ONCE, "files") as pool:
            return [path for path, there in zip(sizes, pool.map(is_there, sizes), strict=True) if not there]

    def of_run(self, run_id: str, chains: Mapping[str, Chain], snapshot_id: SnapshotId) -> Iterator[str]:
        """Paths of the files that a run has staged, and that no snapshot has.

        Nothing of a run whose snapshot has expired: which of its files are in use cannot be told any more.
        """
        used = self._used_by(run_id, chains, snapshot_id)
        if used is None:
            return
        folder = f"/{run_folder(run_id)}/"
        for root in self._roots(run_id):
            with translated(f"listing {root}"):
                found = _files_below(self._table.io, root)
            for path in found:
                if folder in path and path not in used:
                    yield path

    def delete(self, paths: Sequence[str], chains: Mapping[str, Chain], snapshot_id: SnapshotId) -> int:
        """Delete files that no snapshot has; returns how many existed.

        Raises:
            ConnectError: the file system refuses, or does not answer.
        """
        deleted = 0
        runs: dict[str, list[str]] = {}
        for path in paths:
            runs.setdefault(_run_of(path), []).append(path)
        for run_id, own in runs.items():
            used = self._used_by(run_id, chains, snapshot_id)
            for path in own:
                if used is None or path in used:
                    continue
                with translated(f"deleting {path}"):
                    if self._table.io.new_input(path).exists():
                        self._table.io.delete(path)
                        deleted += 1
        return deleted

    @property
    def _name(self) -> str:
        return ".".join(self._table.name())

    def _used_by(self, run_id: str, chains: Mapping[str, Chain], snapshot_id: SnapshotId) -> set[str] | None:
        """Paths that the snapshots of a run have; None if one of them has expired."""
        used: set[str] = set()
        for branch, chain in chains.items():
            chosen = snapshot_id(run_id, str(self._table.metadata.table_uuid), branch)
            found = self._table.metadata.snapshot_by_id(chosen)
            if found is not None:
                used.add(found.manifest_list)
                with translated(f"reading the snapshot {chosen} of {self._name}"):
                    for manifest in found.manifests(self._table.io):
                        if manifest.added_snapshot_id == chosen:
                            entries = manifest.fetch_manifest_entry(self._table.io)
                            used |= {manifest.manifest_path, *(entry.data_file.file_path for entry in entries)}
            elif run_id in chain.runs:
                return None
        return used

    def _roots(self, run_id: str) -> tuple[str, str]:
        """Folders that hold all data files and all manifests of a run."""
        folder, properties, where = run_folder(run_id), self._table.properties, self._table.location_provider()
        data, metadata = where.new_data_location(f"{folder}/x"), where.new_metadata_location(f"{folder}/x")
        if properties.get("write.object-storage.enabled", "false").lower() == "true":  # Paths begin with a hash.
            data = f"{properties.get('write.data.path', f'{self._table.location()}/data')}/{folder}/x"
            return data[: data.rindex(f"/{folder}/")], metadata[: metadata.rindex("/")]
        return data[: data.rindex("/")], metadata[: metadata.rindex("/")]


def _run_of(path: str) -> str:
    """The run that has staged a file; "" if the path is none of this sink."""
    mark = run_folder("")
    return next((part.removeprefix(mark) for part in reversed(path.split("/")[:-1]) if part.startswith(mark)), "")


def _files_below(io: Any, root: str) -> list[str]:
    """Locations of all files below a folder. The library cannot list, so its file system is asked."""
    from pyarrow.fs import FileSelector, FileType

    scheme, netloc, path = io.parse_location(root, io.properties)
    system = io.fs_by_scheme(scheme, netloc)
    selector = FileSelector(path, recursive=True, allow_not_found=True)
    before = root[: len(root) - len(path)] if root.endswith(path) else f"{scheme}://"
    return [f"{before}{found.path}" for found in system.get_file_info(selector) if found.type == FileType.File]
