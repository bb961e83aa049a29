"""A connector as a group of tasks: plan, approval if wanted, and a copy of exactly what was planned.

Copy and publish are one task on purpose. What a copy has staged is not visible, and becomes final with the manifest;
from then on the next run of the connector, whoever starts it, publishes it. So nobody could withhold it any more. An
approval belongs before the copy, and what it approves is a range of offsets, which says exactly which records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup, TriggerRule

from airflow_connect.airflow.lineage.openlineage import Lineage
from airflow_connect.errors import missing_package
from airflow_connect.operators.connector import ConnectorOperator

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

MOST_ROWS = 60
"""Rows of a plan that are shown for approval."""


class ConnectorPlanOperator(ConnectorOperator):
    """Returns what a run of a sink would copy now. Writes nothing, joins no group, starts no Spark.

    Args:
        kwargs: as for `ConnectorOperator`; `add_assets` is False by default. The limits of the trigger form hold for
            the plan, too.

    Returns (XCom):
        `documents.run.Plan` as JSON, with `records` (offsets to copy) and `text` (the plan as a Markdown table). It
        is for `ConnectorOperator(plan=...)`.

    Raises (when it runs):
        AirflowFailException: the error that a run would fail with; or the connector is a source, which has no ranges.
    """

    operator_extra_links = ()  # type: ignore[assignment]  # It writes no objects.

    def __init__(self, *, add_assets: bool = False, **kwargs: Any) -> None:
        """Keep the arguments."""
        super().__init__(add_assets=add_assets, **kwargs)

    def lineage(self) -> Lineage:
        """A plan reads no record and writes nothing."""
        return Lineage()

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan in this process."""
        from airflow_connect.runtime.driver.entry import plan_bounded
        from airflow_connect.runtime.reporting.presentation import plan_parts, plan_table

        spec, redact = self.checked_spec(context)
        with self.failing_for_airflow(spec):
            plan = plan_bounded(spec)
        for line in plan_table(plan):
            self.log.info("%s", redact(line))
        table, *sentences = plan_parts(plan)
        drawn = [table] if isinstance(table, str) else [*table.markdown(MOST_ROWS), ""]
        text = redact("\n".join([*drawn, *sentences]))
        return {**plan.to_json(), "records": sum(len(r) for r in plan.ranges), "text": text}


class ConnectorTaskGroup(TaskGroup):
    """Plan, approval if wanted, and copy.

    The copy is bounded to the offsets of the plan: what was approved is what is copied, however long the approval takes
    and whatever arrives meanwhile. If another run has copied some of it, only the rest is copied; if offsets were set
    back, the copy fails. A plan without records needs no approval.

    Args:
        group_id: name of the group; its tasks are `plan`, `approve` and `copy`.
        approval: whether a person has to approve the plan; or the arguments of Airflow's `ApprovalOperator`, such as
            `{"assigned_users": [...], "response_timeout": timedelta(hours=4)}`. If it is rejected, the copy is skipped.
        group: arguments of `TaskGroup`, such as `tooltip`.
        arguments: as for `ConnectorOperator`.

    Raises:
        ConfigError: `config` and `config_file` are both given, or neither is.
        MissingPackageError: `approval` needs Airflow's standard provider, which is not installed.
    """

    def __init__(
        self,
        group_id: str,
        *,
        approval: bool | Mapping[str, Any] = False,
        group: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        """Create the tasks."""
        super().__init__(group_id=group_id, **(group or {}))
        own = {"outlets", "inlets", "complete_outlet", "add_assets", "driver_conn_id", "deferrable", "poll_interval"}
        with self:
            plan = ConnectorPlanOperator(
                task_id="plan", **{key: value for key, value in arguments.items() if key not in own}
            )
            copy = ConnectorOperator(task_id="copy", plan=plan.output, **{**self._after(approval), **arguments})
            if approval:
                plan >> _approval(plan, {} if approval is True else approval) >> copy

    @staticmethod
    def _after(approval: bool | Mapping[str, Any]) -> dict[str, Any]:
        # An approval that was not needed is skipped. One that was rejected skips the copy itself. If the plan is
        # skipped, too, because a branch before the group was not taken, nothing may be copied.
        return {"trigger_rule": TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS} if approval else {}


def _approval(plan: ConnectorPlanOperator, arguments: Mapping[str, Any]) -> BaseOperator:
    try:
        from airflow_connect.operators.approval import PlanApprovalOperator
    except ImportError as error:
        raise missing_package(
            "apache-airflow-providers-standard", "airflow", purpose="An approval in a DAG", where="where Airflow runs"
        ) from error
    subject = f"Copy what {plan.task_id} shows?"
    return PlanApprovalOperator(**{"task_id": "approve", "subject": subject, "plan": plan.output, **arguments})


__all__ = ["ConnectorPlanOperator", "ConnectorTaskGroup"]
