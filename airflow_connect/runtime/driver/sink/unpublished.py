"""Says more about files that an earlier run staged: with another configuration, or with `at_most_once`.

`delivery.guarantee=at_most_once` commits before it publishes. A file that is not published then is lost, which is what
the configuration asked for, but it must be named (invariant 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_connect.counting import agreeing, names, plural
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError

if TYPE_CHECKING:
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

_REPLAY = "To copy these records again, replay their offsets (airflow-connect replay)."


@contextmanager
def naming_changes(config: SinkConfiguration, manifest: Manifest) -> Iterator[None]:
    """Say which keys have changed since the files of `manifest` were staged, if their store cannot be used now.

    Raises:
        AccessError, ConfigError, UnavailableError: as raised inside, with the run and the keys.
    """
    try:
        yield
    except (AccessError, ConfigError, UnavailableError) as error:
        now = config.without_secrets()
        changed = sorted(key for key in manifest.config.keys() | now.keys() if manifest.config.get(key) != now.get(key))
        if not changed:
            raise
        raise type(error)(
            f"Run {manifest.run_id} ended between manifest and commit and must be finished first, with the"
            f" configuration with which it staged its files. Since then {names(changed, 10)}"
            f" {agreeing(len(changed), 'were')} changed. {error.message}",
            code=error.code,
            suggestion="If that is the reason, restore the former configuration and its credentials until the run is"
            f" finished. {error.suggestion}".rstrip(),
            config_path=error.config_path,
        ) from error


@contextmanager
def naming_unpublished(manifest: Manifest) -> Iterator[None]:
    """Say that offsets are committed already, if files cannot be published with `at_most_once`."""
    try:
        yield
    except ConnectError as error:
        where = [f"{tp}@{offset}" for tp, offset in sorted(manifest.offsets.items())]
        raise type(error)(
            f"{error.message} Because of delivery.guarantee=at_most_once the offsets were committed before: files of"
            f" run {manifest.run_id} that are not visible are given up, and no later run copies their records. It has"
            f" committed {names(where)}.",
            code=error.code,
            suggestion=f"{error.suggestion} {_REPLAY}".strip(),
            config_path=error.config_path,
        ) from error


def notes_of_unpublished(state: ConnectorState, discarded: int, elsewhere: Sequence[str]) -> tuple[str, ...]:
    """Sentences about what a sweep has found of a run that had committed before it published.

    Args:
        state: as the run found it.
        discarded: staged files that the sweep has discarded.
        elsewhere: stores that the sweep could not list, because the configuration no longer names them.
    """
    if not state.unpublished:
        return ()
    committed = (
        f"Run {state.unpublished} had committed its offsets before it published (delivery.guarantee=at_most_once)"
    )
    notes = []
    if discarded:
        notes.append(
            f"{committed}, and did not publish everything: {plural(discarded, 'staged file')}"
            f" {agreeing(discarded, 'were')} discarded. Their records are not in the target. {_REPLAY}"
        )
    if elsewhere:
        notes.append(
            f"{committed}. Whether it has published everything is unknown, because the configuration no longer names"
            f" {names(elsewhere)}. {_REPLAY}"
        )
    return tuple(notes)
