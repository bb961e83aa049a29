"""Compressed files beside the file that they were made of: gzip deletes it only when it has written its own."""

from __future__ import annotations

from collections.abc import Container, Mapping

from airflow_connect.connectors.file_stream.source.discover.rotation import unpacked_name
from airflow_connect.connectors.file_stream.source.offsets.known_content import KnownContent
from airflow_connect.stores.file_system import FoundFile
from airflow_connect.stores.file_systems import FileSystems


def packed_copies(
    files: Mapping[str, FoundFile], known: Container[str], content: KnownContent, file_systems: FileSystems
) -> list[str]:
    """Compressed files without an offset that repeat another file, as far as they are written.

    Once the other file is gone, its offset moves to the compressed one. A compressed file that is older than the other
    one is an earlier log that begins alike. In a bucket an object is complete as soon as it is there, and comparing it
    would transfer it.

    Args:
        files: all that were found.
        known: files with an offset.
        content: of these files.
        file_systems: where they are.
    """
    found = []
    for file in files.values():
        other = files.get(unpacked_name(file.name))
        if other is None or file.name in known or not file.size or file_systems.of(file.name).identity_is_content:
            continue
        is_made_of_it = file.modified_ms >= other.modified_ms and content.is_packed(file)
        if is_made_of_it and not content.is_packed(other) and content.is_beginning(file, other):
            found.append(file.name)
    return found
