"""Names that a listing of directories has left out: links to directories, and what is not a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from airflow_connect.counting import counted, names
from airflow_connect.stores.file_system import FileSystem, FoundFile


def unread(files: FileSystem, is_wanted: Callable[[FoundFile], bool]) -> Iterator[str]:
    """Sentences about them, when everything is listed.

    Args:
        files: the file system.
        is_wanted: whether a file with this name would be read.

    Raises:
        AccessError, UnavailableError: one is a link to a file that may not be described, and that would be read.
    """
    for name, error in files.unreadable_links.items():
        if is_wanted(FoundFile(name, 0, 0)):
            raise error
    if files.linked_directories:
        what = counted(len(files.linked_directories), "directory is a link", "directories are links")
        yield f"{what}, and not followed: {names(files.linked_directories)}."
    if others := [name for name in files.others if is_wanted(FoundFile(name, 0, 0))]:
        what = counted(len(others), "name that would be read is not that", "names that would be read are not those")
        yield f"{what} of a file, and nothing is read there: {names(others)}."
