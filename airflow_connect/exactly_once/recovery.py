"""Sweeping what dead runs staged. Rolling an open manifest forward is `commit.publish`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.run import StagedFile
from airflow_connect.exactly_once.state import COPYING, ConnectorState
from airflow_connect.stores.leftovers import LeftoverPattern
from airflow_connect.stores.store import Publisher


def sweep(publisher: Publisher, leftovers: LeftoverPattern, keep: Iterable[StagedFile] = ()) -> int:
    """Discard staged files of ended runs; returns how many there were.

    Only files that are recognisably ours are touched (invariant 8): another connector may stage in the same bucket,
    even for the same topic. Uploads named by `keep` (an open manifest) stay.
    """
    keep_tokens = {_identity(f.key, f.token) for f in keep}
    ours = [
        found
        for found in publisher.list_staged(leftovers.prefixes)
        if leftovers.matches(found.key) and _identity(found.key, found.token) not in keep_tokens
    ]
    return publisher.abort(ours) if ours else 0


def _identity(key: str, token: Mapping[str, Any]) -> tuple[str, str]:
    """What tells two staged files apart: the temporary file, the upload, or all that the store knows about it."""
    if "path" in token:  # The final key is not known before the file is closed.
        return "", str(token["path"])
    return key, str(token["upload_id"]) if "upload_id" in token else json.dumps(token, sort_keys=True, default=str)


def suspects(state: ConnectorState) -> tuple[LeftoverPattern, ...]:
    """What has to be swept once more by the run after the one that finds `state`.

    A run that died while it copied may have left requests on their way to the store, and executors that notice late;
    a frozen one may go on. What they stage after the first sweep is found by a second one.
    """
    return state.leftovers if state.phase == COPYING else ()


def merged(patterns: Iterable[LeftoverPattern]) -> tuple[LeftoverPattern, ...]:
    """The same patterns, those of equal form as one, so that any number of crashes leaves a short list."""
    found: dict[tuple[str, tuple[str, ...], str], LeftoverPattern] = {}
    for p in patterns:
        form = (p.store, p.prefixes, p.pattern)
        found[form] = replace(p, ranges=_hulls([*found[form].ranges, *p.ranges])) if form in found else p
    return tuple(found.values())


def _hulls(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """One range per topic-partition: all of them belong to runs that have ended, and so does what lies between."""
    hulls: dict[TopicPartition, OffsetRange] = {}
    for r in ranges:
        known = hulls.get(r.topic_partition, r)
        hulls[r.topic_partition] = replace(r, start=min(r.start, known.start), end=max(r.end, known.end))
    return tuple(hulls[tp] for tp in sorted(hulls))
