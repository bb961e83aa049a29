"""What follows a restore, as Airflow tasks: offsets of consumer groups, and settings of topics."""

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


class RestoreSettingsOperator(ConnectorTask):
    """Sets the settings of restored topics that would have deleted records meanwhile: those of their originals.

    A topic that the restore has created gets what its original had; one whose retention was lifted
    (`target.retention.lifted=true`) gets what it had before. The task may be repeated.

    Args:
        dry_run: only return the settings.
        kwargs: as for `SetOffsetsOperator`; the configuration is that of the restore source.

    Returns (XCom):
        `topics`, each with `topic`, `settings`, `before`, `deletedSoon`, `isDone` and `failure` (None).

    Raises (when it runs):
        AirflowFailException: Kafka would delete restored records soon, and `accept.loss=retention` is not set; a topic
            was deleted or recreated (other topics are set nevertheless); the connector is no restore source.
        UnavailableError: a server does not answer; `retries` apply.
    """

    def __init__(self, *, dry_run: bool = False, **kwargs: Any) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.only_shows = dry_run

    def execute(self, context: Context) -> dict[str, Any]:
        """Set the settings."""
        from airflow_connect.runtime.driver.offsets.restored_settings import restore_settings

        with self.failing_for_airflow():
            spec = self.arguments().run_spec()
        redact = redactor_of(spec)
        with self.failing_for_airflow(spec):
            found = restore_settings(spec, only_shows=self.only_shows)
            for one in found:
                settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
                state = "it has them" if one.is_done else "not set"
                self.log.info("%s: %s; %s.", one.topic, settings, state)
                if one.deleted_soon:
                    what = plural(one.deleted_soon, "record")
                    self.log.warning("%s: Kafka deletes %s soon, because they are older.", one.topic, what)
            failures = [one.failure for one in found if one.failure is not None]
            for error in failures[1:]:
                self.log_failure(error.to_json(), redact)
            if failures:
                raise failures[0]
        return {"topics": [one.to_json() for one in found]}


__all__ = ["RestoreGroupsOperator", "RestoreSettingsOperator"]
