"""`ConnectorNotifier`: what a run of a connector did, as a short text for any channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from airflow_connect.airflow.lineage.links import problems_url
from airflow_connect.runtime.reporting.texts import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from airflow.sdk import Context

Send = Callable[[str], Any]


class ConnectorNotifier(BaseNotifier):
    """Sends the outcome of a `ConnectorOperator` through a channel of your choice; for callbacks of the task.

        on_failure_callback=ConnectorNotifier(lambda text: SlackWebhookNotifier(text=text))

    Args:
        send: gets the text. It sends it, or returns a notifier that does; that one is called with the task's context.
        only_if_records: say nothing about a run that found nothing to copy.
    """

    def __init__(self, send: Send, *, only_if_records: bool = False) -> None:
        super().__init__()
        self.send = send
        self.only_if_records = only_if_records

    def notify(self, context: Context) -> None:
        """Called by Airflow with the context of the task."""
        instance: Any = context["ti"]
        error = context.get("exception")
        summary = None if error else instance.xcom_pull(task_ids=instance.task_id, map_indexes=instance.map_index)
        found = summary or {}
        if self.only_if_records and error is None and not (found.get("records") or found.get("recovered_records")):
            return
        channel = self.send(text_of(instance, summary, error))
        if isinstance(channel, BaseNotifier):
            channel(context)


def text_of(instance: Any, summary: Mapping[str, Any] | None, error: BaseException | str | None) -> str:
    """A line about the task, and one about its run; if something is wrong, one with the address of the page *Problems*.

    Args:
        instance: the task instance.
        summary: what the task returned, see `outcome.summary_of`.
        error: what it failed with; messages of this package hold no secret.
    """
    where = f"{instance.dag_id}.{instance.task_id}, {instance.run_id}, try {instance.try_number}"
    if error is not None:
        return f"Failed: {where}\n{error}{_link()}"
    if not summary:
        return f"Finished: {where}"
    counts = [plural(summary["records"], "record")]
    counts += [plural(summary["files"], "file")] if summary.get("files") else []
    counts += [format_bytes(summary["bytes"])] if summary.get("bytes") else []
    problems = [
        f"{plural(summary[key], 'record')} {what}"
        for key, what in (("dead_lettered", "in the dead letter queue"), ("failed", "skipped"), ("late", "late"))
        if summary.get(key)
    ]
    told = f"{', '.join(counts)} in {format_seconds(summary['seconds'])}" if summary["records"] else "nothing to copy"
    if summary.get("recovered_run_id"):
        recovered = plural(summary.get("recovered_records", 0), "record")
        problems.append(f"run {summary['recovered_run_id']} was finished first: {recovered}")
    link = _link() if summary.get("dead_lettered") or summary.get("failed") else ""
    return f"Finished: {where}\n{summary['connector']}: {'; '.join([told, *problems])}. Run {summary['run_id']}.{link}"


def _link() -> str:
    url = problems_url()
    return f"\nProblems: {url}" if url else ""
