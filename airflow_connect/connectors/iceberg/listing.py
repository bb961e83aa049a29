"""Every table of a catalog that records may have named: such a catalog also has tables of others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_connect.connectors.iceberg.catalogs import translated
from airflow_connect.errors import AccessError, IcebergError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from airflow_connect.java.patterns.compiled import JavaPattern

log = logging.getLogger(__name__)


def loaded(catalog: Catalog, name: str) -> Table | None:
    """A table that need not be one that this sink can write to; None if it does not exist.

    Raises:
        ConnectError: the catalog refuses, or does not answer.
    """
    try:
        with translated(f"loading table {name}"):
            return catalog.load_table(name)
    except IcebergError as error:
        if error.code == "iceberg.no_table":
            return None
        raise


def tables_of(catalog: Catalog, pattern: JavaPattern) -> Iterator[Table]:
    """The tables whose names match, also in nested namespaces. One that cannot be loaded is named in the log.

    Raises:
        ConnectError: the catalog does not list its tables, or does not answer.
    """
    with translated("listing tables"):
        names = [name for name in _names(catalog) if pattern.fullmatch(name) is not None]
    for name in names:
        try:
            table = loaded(catalog, name)
        except (AccessError, IcebergError) as error:
            log.warning("Table %s was left out, because it cannot be loaded: %s", name, error.message)
            continue
        if table is not None:
            yield table


def _names(catalog: Catalog) -> Iterator[str]:
    from pyiceberg.exceptions import NoSuchNamespaceError

    for namespace in _namespaces(catalog, ()):
        try:
            yield from (".".join(name) for name in catalog.list_tables(namespace))
        except NoSuchNamespaceError:
            continue  # Dropped meanwhile, or only the beginning of others' names.


def _namespaces(catalog: Catalog, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The namespaces below one. A catalog without nested ones may list the same again, or none, or refuse."""
    from pyiceberg.exceptions import NoSuchNamespaceError

    try:
        found = {*catalog.list_namespaces(parent)}
    except NoSuchNamespaceError:
        return
    for namespace in sorted(found):
        if len(namespace) == len(parent) + 1 and namespace[: len(parent)] == parent:
            yield namespace
            yield from _namespaces(catalog, namespace)
