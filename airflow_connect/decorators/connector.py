"""`@task.connector`: a function that returns a connector's configuration becomes a run of that connector."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.bases.decorator import DecoratedOperator, determine_kwargs, task_decorator_factory
from airflow.sdk.definitions._internal.types import SET_DURING_EXECUTION
from airflow.sdk.definitions.context import context_merge

from airflow_connect.errors import ConfigError
from airflow_connect.operators.connector import ConnectorOperator

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import TaskDecorator


class ConnectorDecoratedOperator(DecoratedOperator, ConnectorOperator):
    """Runs the connector whose configuration the decorated function returns. See `connector_task`."""

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *ConnectorOperator.template_fields)
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **ConnectorOperator.template_fields_renderers,
    }
    custom_operator_name = "@task.connector"
    # The Rendered Templates tab then shows the configuration that the function returned.
    overwrite_rtif_after_execution = True

    def __init__(
        self,
        *,
        python_callable: Callable[..., Mapping[str, Any]],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments; the configuration is known only when the task runs."""
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            config=SET_DURING_EXECUTION,
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        """Call the function, then run the connector.

        Raises:
            AirflowFailException: the function returned something else than a configuration, or the run failed.
        """
        context_merge(context, self.op_kwargs)
        arguments = determine_kwargs(self.python_callable, self.op_args, context)
        config = self.python_callable(*self.op_args, **arguments)
        with self.failing_for_airflow():
            if not isinstance(config, Mapping):
                raise ConfigError(
                    f"The function of task {self.task_id!r} returned a {type(config).__name__}, not a configuration.",
                    suggestion="Return the connector's configuration as a dictionary.",
                    config_path="config",
                )
        self.config = config
        self.render_template_fields(context)
        return super().execute(context)


def connector_task(python_callable: Callable[..., Mapping[str, Any]] | None = None, **kwargs: Any) -> TaskDecorator:
    """`@task.connector`: run the connector whose configuration the function returns.

    The function runs in the task, right before the run, so it may use connections, variables and the results of other
    tasks. What it returns is templated, too. The task returns the summary of the run, as `ConnectorOperator` does.

    Args:
        python_callable: the function.
        kwargs: as for `ConnectorOperator`, except `config` and `config_file`.
    """
    kwargs.setdefault("multiple_outputs", False)  # The summary of a run is one result.
    return task_decorator_factory(
        python_callable=python_callable,
        decorated_operator_class=ConnectorDecoratedOperator,
        **kwargs,
    )


__all__ = ["ConnectorDecoratedOperator", "connector_task"]
