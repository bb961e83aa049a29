"""What publishers of every store do alike: try it out, publish many files at once, and tell of conflicts at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from airflow_connect.api.errors import ConnectError, PublishConflictError, UnavailableError
from airflow_connect.api.run import StagedFile
from airflow_connect.api.staging import Outcome

TRIALS = 3


def try_out(trial: Callable[[], None], deleted: str) -> None:
    """Make the trial of a preflight, and make it again when its file is deleted meanwhile.

    The sweep of a newer run does that to a run that stood still for a while. The newer run fences it, and that is what
    has to end it, with a sentence that says so.

    Args:
        trial: writes, renames and deletes a file of a name that is new each time.
        deleted: code of the error that says that a file which is being written has gone.

    Raises:
        UnavailableError: something deletes the file every time.
        ConnectError: what the trial raises.
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
        f"The file with which this run tried out the store was deleted {TRIALS} times before it could be renamed.",
        code="publish.trial_deleted",
        suggestion="Let nothing delete files below +tmp while runs work; nothing was copied yet, so run again.",
    ) from gone


@dataclass(slots=True)
class Published:
    """What came of the files of a manifest.

    Attributes:
        outcomes: by key.
        conflicts: of the files that were not published because something else stands under their keys.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    conflicts: list[PublishConflictError] = field(default_factory=list)

    def checked(self, strangers: str) -> dict[str, Outcome]:
        """The outcomes of all files.

        Args:
            strangers: what stands under the others' keys, for the message: `names hold other files`.

        Raises:
            PublishConflictError: names the first conflict and how many there are.
        """
        if not self.conflicts:
            return self.outcomes
        first = min(self.conflicts, key=lambda error: error.message)  # Not by chance: they come from many threads.
        if len(self.conflicts) == 1:
            raise first
        raise PublishConflictError(
            f"{len(self.conflicts)} {strangers} than the staged ones. The first: {first.message}",
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

    A conflict does not keep the others from being published; every other error does, because nothing else would
    succeed.

    Args:
        files: with keys that differ, see `refuse_equal_keys`.
        publish_one: publishes one of them.
        progress: gets the number done.
        pool: threads.

    Raises:
        Exception: the first of `publish_one` that is no PublishConflictError; files that had not begun are left.
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
    """Refuse a manifest that names one key twice, before anything of it is visible.

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
