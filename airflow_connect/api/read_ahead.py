"""How far a sink task reads ahead of what it writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How much a task holds of what it has not put yet. In memory a small message takes several times its size.

    Attributes:
        partition_records: fetched records of each partition after which no more are fetched for it.
        fetched_bytes: bytes of all fetched records after which no more are fetched.
        column_records: records of all partitions that may wait to become batches in columns; None: those of 16 MB.
    """

    partition_records: int = 50_000
    fetched_bytes: int = 32 << 20
    column_records: int | None = None
