"""Filter: drops records, those for which its predicate holds. KIP-585."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.transform import R, Transformation

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns


class Filter(Transformation):
    """Drop every record that it applies to; without a predicate that is every record."""

    def apply(self, record: R) -> R | None:
        """Drop the record."""
        return None

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """Drop all records."""
        import numpy as np

        return batch.filter(np.zeros(len(batch), dtype=np.bool_))
