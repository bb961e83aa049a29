"""Sweeps what dead runs staged. `commit.publish` rolls an open manifest forward."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.staging import LeftOver, StagedFile
from airflow_connect.exactly_once.state import COPYING, ConnectorState
from airflow_connect.stores.store import Publisher


def sweep(
    publisher: Publisher,
    leftovers: LeftoverPattern,
    keep: Iterable[StagedFile] = (),
    may_discard: Callable[[], bool] = lambda: True,
) -> int:
    """Discard staged files of runs that have ended; returns how many there were.

    Args:
        publisher: the store's publisher.
        leftovers: what the staged files look like.
        keep: files of an open manifest, which are not discarded.
        may_discard: returns whether no newer run has begun; called after the listing, if there is anything to discard.
    """
    ours = left_over(publisher, leftovers, keep)
    return publisher.abort(ours) if ours and may_discard() else 0


def left_over(publisher: Publisher, leftovers: LeftoverPattern, keep: Iterable[StagedFile] = ()) -> list[LeftOver]:
    """Staged files that match `leftovers`, except those of `keep`.

    Finds only files that this connector must have staged (invariant 8): another connector may stage in the same bucket,
    even for the same topic.
    """
    kept = {identity(f.key, f.token) for f in keep}
    return [
        found
        for found in publisher.list_staged(leftovers.prefixes)
        if leftovers.matches(found.key) and identity(found.key, found.token) not in kept
    ]


def identity(key: str, token: Mapping[str, Any]) -> tuple[str, str]:
    """What distinguishes two staged files: the temporary file, the upload, or the store's whole token."""
    if "path" in token:  # The final key is not known before the file is closed.
        return "", str(token["path"])
    return key, str(token["upload_id"]) if "upload_id" in token else json.dumps(token, sort_keys=True, default=str)


def leftovers_to_resweep(state: ConnectorState) -> tuple[LeftoverPattern, ...]:
    """What later runs must sweep again, after the run that found `state` has swept.

    A run that died while it copied may have requests in flight, and executors that notice late. A frozen run may
    continue. So may a second attempt of a slow task, even after the commit. What they stage after the first sweep is
    found by later ones: `LeftoverPattern.sweeps` of them, and at least one more after a run that died.
    """
    least = 1 if state.phase == COPYING else 0
    later = (replace(pattern, sweeps=max(pattern.sweeps - 1, least)) for pattern in state.leftovers)
    return tuple(pattern for pattern in later if pattern.sweeps)


def merge_leftovers(patterns: Iterable[LeftoverPattern]) -> tuple[LeftoverPattern, ...]:
    """The patterns, with equal ones merged, so that the list stays short after any number of crashes."""
    found: dict[tuple[str, tuple[str, ...], str], LeftoverPattern] = {}
    for p in patterns:
        form = (p.store, p.prefixes, p.pattern)
        known = found.get(form)
        if known is not None:
            ranges, sweeps = _hulls([*known.ranges, *p.ranges]), max(known.sweeps, p.sweeps)
            found[form] = replace(p, ranges=ranges, sweeps=sweeps)
        else:
            found[form] = p
    return tuple(found.values())


def _hulls(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """One range per topic-partition: all ranges, and everything between them, belong to runs that have ended."""
    hulls: dict[TopicPartition, OffsetRange] = {}
    for r in ranges:
        known = hulls.get(r.topic_partition, r)
        hulls[r.topic_partition] = replace(r, start=min(r.start, known.start), end=max(r.end, known.end))
    return tuple(hulls[tp] for tp in sorted(hulls))
