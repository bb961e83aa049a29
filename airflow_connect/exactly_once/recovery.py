"""Sweeping what dead runs staged. Rolling an open manifest forward is `commit.publish`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.run import StagedFile
from airflow_connect.api.staging import LeftOver
from airflow_connect.exactly_once.state import COPYING, ConnectorState
from airflow_connect.stores.leftovers import LeftoverPattern
from airflow_connect.stores.store import Publisher


def sweep(
    publisher: Publisher,
    leftovers: LeftoverPattern,
    keep: Iterable[StagedFile] = (),
    may_discard: Callable[[], bool] = lambda: True,
) -> int:
    """Discard staged files of ended runs; returns how many there were.

    Args:
        publisher: of the store.
        leftovers: how they look.
        keep: an open manifest's files, which stay.
        may_discard: asked once there is something to discard, after it was listed: whether no newer run has begun.
    """
    ours = left_over(publisher, leftovers, keep)
    return publisher.abort(ours) if ours and may_discard() else 0


def left_over(publisher: Publisher, leftovers: LeftoverPattern, keep: Iterable[StagedFile] = ()) -> list[LeftOver]:
    """Staged files that look like `leftovers`, except those of `keep`.

    Only what is recognisably ours is found (invariant 8): another connector may stage in the same bucket, even for the
    same topic.
    """
    kept = {identity(f.key, f.token) for f in keep}
    return [
        found
        for found in publisher.list_staged(leftovers.prefixes)
        if leftovers.matches(found.key) and identity(found.key, found.token) not in kept
    ]


def identity(key: str, token: Mapping[str, Any]) -> tuple[str, str]:
    """What tells two staged files apart: the temporary file, the upload, or all that the store knows about it."""
    if "path" in token:  # The final key is not known before the file is closed.
        return "", str(token["path"])
    return key, str(token["upload_id"]) if "upload_id" in token else json.dumps(token, sort_keys=True, default=str)


def suspects(state: ConnectorState) -> tuple[LeftoverPattern, ...]:
    """What later runs have to sweep again, after the one that finds `state` and has swept.

    A run that died while it copied may have left requests on their way to the store, and executors that notice late;
    a frozen one may go on; so may a copy of a slow task after the commit. What they stage after the first sweep is
    found by the next ones, of which there are `LeftoverPattern.sweeps`; at least one more after a run that died.
    """
    least = 1 if state.phase == COPYING else 0
    later = (replace(pattern, sweeps=max(pattern.sweeps - 1, least)) for pattern in state.leftovers)
    return tuple(pattern for pattern in later if pattern.sweeps)


def merged(patterns: Iterable[LeftoverPattern]) -> tuple[LeftoverPattern, ...]:
    """The same patterns, those of equal form as one, so that any number of crashes leaves a short list."""
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
    """One range per topic-partition: all of them belong to runs that have ended, and so does what lies between."""
    hulls: dict[TopicPartition, OffsetRange] = {}
    for r in ranges:
        known = hulls.get(r.topic_partition, r)
        hulls[r.topic_partition] = replace(r, start=min(r.start, known.start), end=max(r.end, known.end))
    return tuple(hulls[tp] for tp in sorted(hulls))
