"""The approval between plan and copy: Airflow's own, of the standard provider. Imported only if a DAG wants it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context


class PlanApprovalOperator(ApprovalOperator):
    """Asks a person whether a plan shall be copied. A plan without records needs no approval: the task is skipped.

    Args:
        plan: what `ConnectorPlanOperator` returned. Templated.
        kwargs: as for `ApprovalOperator`. `body` shows the plan unless you set it.
    """

    template_fields: Collection[str] = (*ApprovalOperator.template_fields, "plan")

    def __init__(self, *, plan: Mapping[str, Any], **kwargs: Any) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.plan = plan

    def execute(self, context: Context) -> None:
        """Ask, and wait without occupying a slot.

        Raises:
            AirflowSkipException: there is nothing to copy.
        """
        if not self.plan["records"]:
            raise AirflowSkipException("There is nothing to copy, so nothing has to be approved.")
        if self.body is None:
            self.body = self.plan["text"]
        super().execute(context)
