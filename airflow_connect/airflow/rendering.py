"""Configurations in templated fields of operators and sensors: text stays text, and secrets are masked.

With `render_template_as_native_obj=True` Airflow reads every rendered text as a Python literal, also one without a
template: "1.10" would become the number 1.1, while values of a Kafka Connect configuration are text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.api.config.values import is_secret_name
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.reporting.redaction import secret_values

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import BaseOperator, Context

    _Base = BaseOperator
else:
    _Base = object

_MARKS = ("{{", "{%", "{#")


class ConfigurationTemplates(_Base):
    """A base class of operators, before `BaseOperator`, whose templated fields hold configurations.

    It extends `_do_render_template_fields`, because Airflow calls nothing else of a mapped task.
    """

    configuration_fields: ClassVar[tuple[str, ...]] = ("config", "worker")

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        given = {name: getattr(self, name, None) for name in self.configuration_fields}
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        if parent is not self:
            return
        for name, value in given.items():
            rendered = getattr(self, name, None)
            if isinstance(rendered, Mapping):
                setattr(self, name, _secrets_as_text(self._as_text(value, rendered, context, jinja_env)))
        parts = [part for name in self.configuration_fields if isinstance(part := getattr(self, name, None), Mapping)]
        mask_in_airflow(secret_values(*parts, secret_names=_secret_names(parts)))
        self.after_rendering(context)

    def after_rendering(self, context: Context) -> None:
        """What else is to be done before Airflow shows the rendered fields."""

    def _as_text(
        self, given: Any, rendered: Mapping[str, Any], context: Context, jinja_env: jinja2.Environment
    ) -> Mapping[str, Any]:
        from jinja2.nativetypes import NativeEnvironment

        dag = self.get_dag()
        if dag is None or not isinstance(given, Mapping) or not isinstance(jinja_env, NativeEnvironment):
            return rendered
        as_text = dag.get_template_env(force_sandboxed=True)
        return {
            key: _merged(given.get(key), value, lambda text: as_text.from_string(text).render(context))
            for key, value in rendered.items()
        }


def _secret_names(configs: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    from airflow_connect.config.resolved.loading import secret_names

    return frozenset().union(*(secret_names(config) for config in configs if config.get("connector.class")))


def ensure_rendered(given: Any, rendered: Any, name: str) -> None:
    """Refuse a template that has become None where None has a meaning of its own, such as "all offsets".

    With `render_template_as_native_obj=True` an empty field of the trigger form becomes None, and so does the result of
    a task that was skipped.

    Args:
        given: the argument as the DAG has it.
        rendered: the same when its templates are rendered.
        name: of the argument, for the message.

    Raises:
        ConfigError: names the argument, or the member of it.
    """
    if given is not None and rendered is None:
        raise ConfigError(
            f"{name} is a template that has become None, and None would mean something else than no value.",
            code="airflow.template_empty",
            config_path=name,
            suggestion="Give a value: a field of the trigger form is empty, or the task whose result this is was"
            " skipped. To mean None, write None into the DAG.",
        )
    if isinstance(given, Mapping) and isinstance(rendered, Mapping):
        for key, value in given.items():
            ensure_rendered(value, rendered.get(key), f"{name} of {key}")
    elif isinstance(given, (list, tuple)) and isinstance(rendered, (list, tuple)):
        for number, (value, new) in enumerate(zip(given, rendered, strict=False)):
            ensure_rendered(value, new, f"{name}[{number}]")


def _merged(given: Any, rendered: Any, render: Callable[[str], str]) -> Any:
    """`rendered`, but what was text, and became a number or another literal, as text.

    Text, lists, dictionaries and None that a template returns stay.
    """
    if isinstance(given, str):
        if not any(mark in given for mark in _MARKS):
            return given
        return rendered if rendered is None or isinstance(rendered, (str, list, dict)) else render(given)
    if isinstance(given, Mapping) and isinstance(rendered, Mapping):
        return {key: _merged(given.get(key), value, render) for key, value in rendered.items()}
    if isinstance(given, list) and isinstance(rendered, list) and len(given) == len(rendered):
        return [_merged(value, new, render) for value, new in zip(given, rendered, strict=True)]
    return rendered


def _secrets_as_text(config: Mapping[str, Any]) -> dict[str, Any]:
    """Airflow masks text only, so a number that is a secret becomes text."""

    def is_number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    return {key: str(value) if is_number(value) and is_secret_name(key) else value for key, value in config.items()}
