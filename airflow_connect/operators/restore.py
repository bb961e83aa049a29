"""The offsets of consumer groups in restored topics, as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.counting import plural
from airflow_connect.operators.connector_task import ConnectorTask, redactor_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class RestoreGroupsOperator(ConnectorTask):
    """Sets the offsets of consumer groups in topics that a restore source has restored, as the backup has them.

    Each offset is translated by reading backup and topic side by side, in this process; no Spark is started. The task
    may be repeated: a group that has its offset already is left as it is.

    Args:
        groups: Java regular expression that must match the whole name of a group; "": all that the document has.
            Templated.
        document: run id of the run of the sink whose document has the offsets; "": the newest one. Templated.
        overwrite: also set groups that have committed other offsets in the restored topics.
        dry_run: only return the translated offsets.
        kwargs: as for `SetOffsetsOperator`; the configuration is that of the restore source.

    Returns (XCom):
        `document`, `writtenMs` (when it was written), `offsets` (`group`, `topic`, `partition`, `offset`,
        `restoredTopic`, `newOffset`, `note`, `isDone`), `failures` (empty) and `notes`.

    Raises (when it runs):
        AirflowFailException: a group has live members or other offsets already (other groups are set nevertheless); the
            connector is no restore source; the backup has no document; a topic holds other records than the backup.
        UnavailableError: a server does not answer; `retries` apply.
    """

    template_fields: Sequence[str] = (*ConnectorTask.template_fields, "groups", "document")

    def __init__(
        self, *, groups: str = "", document: str = "", overwrite: bool = False, dry_run: bool = False, **kwargs: Any
    ) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.groups = groups
        self.document = document
        self.overwrites = overwrite
        self.only_shows = dry_run

    def execute(self, context: Context) -> dict[str, Any]:
        """Translate the offsets, and set them."""
        from airflow_connect.runtime.driver.offsets.restored_groups import GroupChoice, restore_groups

        with self.failing_for_airflow():
            spec = self.arguments().run_spec()
        redact = redactor_of(spec)
        choice = GroupChoice(self.groups, self.document, only_shows=self.only_shows, overwrites=self.overwrites)
        with self.failing_for_airflow(spec):
            found = restore_groups(spec, choice)
            for note in found.notes:
                self.log.warning("%s", redact(note))
            for one in found.offsets:
                what = f"{one.group}: {one.original}@{one.offset} is {one.restored}@{one.new_offset}"
                self.log.info("%s", f"{what}; {one.note}" if one.note else what)
            done = sum(one.is_done for one in found.offsets)
            self.log.info("%s of %s translated, %d set.", plural(len(found.offsets), "offset"), found.document, done)
            failures = list(found.failures.values())
            for error in failures[1:]:
                self.log_failure(error.to_json(), redact)
            if failures:
                raise failures[0]
        return found.to_json()


__all__ = ["RestoreGroupsOperator"]
