"""Sweeping what dead runs staged. Rolling an open manifest forward is `commit.publish`."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_connect.api.run import StagedFile
from airflow_connect.stores.leftovers import LeftoverPattern
from airflow_connect.stores.store import Publisher


def sweep(publisher: Publisher, leftovers: LeftoverPattern, keep: Iterable[StagedFile] = ()) -> int:
    """Discard staged files of ended runs; returns how many there were.

    Only files that are recognisably ours are touched (invariant 8): another connector may stage in the same bucket,
    even for the same topic. Uploads named by `keep` (an open manifest) stay.
    """
    keep_tokens = {(f.key, f.token.get("upload_id")) for f in keep}
    ours = [
        found
        for found in publisher.list_staged(leftovers.prefixes)
        if leftovers.matches(found.key) and (found.key, found.token.get("upload_id")) not in keep_tokens
    ]
    return publisher.abort(ours) if ours else 0
