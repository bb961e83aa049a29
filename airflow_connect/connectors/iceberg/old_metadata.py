"""Metadata files of a table that a commit has made superfluous, in catalogs whose client writes them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CommitTableResponse, Table

DELETES = "write.metadata.delete-after-commit.enabled"

log = logging.getLogger(__name__)


def delete_old_metadata(catalog: Catalog, before: Table, done: CommitTableResponse) -> None:
    """Delete what the table's metadata no longer lists, if the table says so. The server of a REST catalog does that.

    What cannot be deleted is named in the log; the commit has succeeded, whatever comes of it.

    Args:
        catalog: that has committed.
        before: the table that the commit was based on.
        done: what the catalog has answered.
    """
    from pyiceberg.catalog import MetastoreCatalog

    if not isinstance(catalog, MetastoreCatalog) or done.metadata.properties.get(DELETES, "").lower() != "true":
        return
    listed = {entry.metadata_file for entry in done.metadata.metadata_log}
    for entry in before.metadata.metadata_log:
        if entry.metadata_file not in listed:
            try:
                before.io.delete(entry.metadata_file)
            except OSError as error:
                name = ".".join(before.name())
                log.warning("Old metadata %s of table %s could not be deleted: %s", entry.metadata_file, name, error)
