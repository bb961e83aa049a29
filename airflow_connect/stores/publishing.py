"""Code shared by all publishers: try out a store, publish many files in parallel, report conflicts at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from airflow_connect.api.staging import Outcome, StagedFile
from airflow_connect.errors import ConnectError, PublishConflictError, UnavailableError

TRIALS = 3


def try_out(trial: Callable[[], None], deleted: str) -> None:
    """Run the trial of a preflight, and repeat it if its file is deleted meanwhile.

    The sweep of a newer run can delete it if this run was suspended for a while. The newer run fences this one, and the
    run should end with the message about that.

    Args:
        trial: writes, renames and deletes a file with a new name each time.
        deleted: code of the error for a file that disappears while it is written.

    Raises:
        UnavailableError: the file is deleted every time.
        ConnectError: raised by the trial.
    """
    for _ in range(TRIALS):
        try:
            return trial()
        except FileNotFoundError as error:
            gone: Exception = error
        except ConnectError as error:
            if error.code != deleted:
                raise
            gone = error
    raise UnavailableError(
        f"The test file of this run was deleted {TRIALS} times before it could be renamed.",
        code="publish.trial_deleted",
        suggestion="Make sure that nothing deletes files below +tmp during runs. Nothing was copied yet, so run again.",
    ) from gone


@dataclass(slots=True)
class Published:
    """The results of publishing a manifest.

    Attributes:
        outcomes: by key.
        conflicts: for the files that were not published because another file has their key.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    conflicts: list[PublishConflictError] = field(default_factory=list)

    def checked(self, conflict_text: str) -> dict[str, Outcome]:
        """The outcomes of all files.

        Args:
            conflict_text: describes the conflicts, for the message: `names hold other files`.

        Raises:
            PublishConflictError: names the first conflict and the number of conflicts.
        """
        if not self.conflicts:
            return self.outcomes
        first = min(
            self.conflicts, key=lambda error: error.message
        )  # Deterministic, although they come from many threads.
        if len(self.conflicts) == 1:
            raise first
        raise PublishConflictError(
            f"{len(self.conflicts)} {conflict_text} than the staged ones. The first: {first.message}",
            suggestion=first.suggestion,
            config_path=first.config_path,
        )


def publish_each(
    files: Sequence[StagedFile],
    publish_one: Callable[[StagedFile], Outcome],
    progress: Callable[[int], None],
    pool: ThreadPoolExecutor,
) -> Published:
    """Publish files on the threads of `pool`.

    After a conflict the other files are still published; any other error stops, because nothing else would succeed.

    Args:
        files: with distinct keys, see `refuse_equal_keys`.
        publish_one: publishes one of them.
        progress: called with the number of files done.
        pool: threads.

    Raises:
        Exception: the first error of `publish_one` other than PublishConflictError; files not yet started are not
            published.
    """
    published = Published()
    running = {pool.submit(publish_one, file): file for file in files}
    for done, future in enumerate(as_completed(running), start=1):
        try:
            published.outcomes[running[future].key] = future.result()
        except PublishConflictError as error:
            published.conflicts.append(error)
        except BaseException:
            for other in running:
                other.cancel()
            raise
        progress(done)
    return published


def refuse_equal_keys(files: Sequence[StagedFile]) -> None:
    """Reject a manifest that contains a key twice, before any of its files is visible.

    Raises:
        PublishConflictError: with the key.
    """
    keys: set[str] = set()
    for file in files:
        if file.key in keys:
            raise PublishConflictError(
                f"Two staged files have the key {file.key}; one would replace the other.", code="publish.same_key"
            )
        keys.add(file.key)
