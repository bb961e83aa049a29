"""A new connector: a configuration of Kafka Connect, pasted or typed key by key; checked, planned, then registered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.airflow.pages.calls import Call
from airflow_connect.airflow.pages.rendering import render
from airflow_connect.control.herder.plugins import installed
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.validation import refuse_invalid, validated
from airflow_connect.control.overview.watching import Seen
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import connector_of

SET = "set:"
"""Prefix of the form fields that hold the value of one key."""
WAS = "was:"
"""Prefix of the form fields that hold what those have shown."""
NAME, CLASS = "name", "connector.class"
START = {NAME: "", CLASS: ""}


@dataclass(frozen=True, slots=True)
class FormKey:
    """A key as a field of the form.

    Attributes:
        is_open: whether it is shown at once: it is set, required, wrong or important.
    """

    name: str
    group: str
    documentation: str
    default: str
    value: str
    errors: tuple[str, ...]
    choices: tuple[str, ...]
    is_required: bool
    is_secret: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """A configuration that was looked at.

    Attributes:
        config: as it would be registered.
        keys: of its class, by group.
        problem: why it cannot be registered, or "".
    """

    config: Mapping[str, str | None]
    keys: tuple[FormKey, ...] = ()
    problem: str = ""


def page(call: Call) -> str:
    """The empty form; the query may name a class."""
    chosen = {**START, CLASS: call.query.get("class", "")}
    return _page(call, Checked(chosen))


def check(call: Call) -> str | tuple[int, str]:
    """The form with what is wrong, or with the plan of the first run. Nothing is registered."""
    checked = checked_form(call)
    html = _page(call, checked)
    return (400, html) if checked.problem else html


def checked_form(call: Call) -> Checked:
    """The configuration of a form, and its errors; offline but for references."""
    try:
        config = _config_of(call)
    except ConnectError as error:
        return Checked(START, problem=str(error))
    try:
        infos = _infos(call, config)
    except RefusedError as refused:
        return Checked(config, problem=refused.message)
    keys = tuple(_key(info, config) for info in infos if info["definition"] is not None)
    try:
        refuse_invalid(config, call.console.worker(call.conn_id))
        if not config.get(NAME):
            raise RefusedError("A connector needs a name.")
    except RefusedError as refused:
        return Checked(config, keys, refused.message.partition("\nYou can also find")[0])
    return Checked(config, keys)


def _infos(call: Call, config: Mapping[str, str | None]) -> list[dict[str, Any]]:
    found = validated(str(config.get(CLASS) or ""), config, call.console.worker(call.conn_id))
    configs: list[dict[str, Any]] = found["configs"]
    return configs


def _config_of(call: Call) -> dict[str, str | None]:
    """The text of the form, changed by those fields that somebody has changed: an empty one removes its key."""
    text = call.field_of("config")
    parsed = connector_of(text, "The configuration") if text else {}
    config: dict[str, str | None] = {key: None if value is None else str(value) for key, value in parsed.items()}
    for field, values in call.form.items():
        key, value = field.removeprefix(SET), values[-1].strip()
        # A field that was left alone must not undo what was changed in the text.
        if not field.startswith(SET) or call.form.get(f"{WAS}{key}", [None])[-1] == value:
            continue
        if value:
            config[key] = value
        elif key != CLASS:  # Nothing chosen in the list of classes: the text names one.
            config.pop(key, None)
    return config


def _key(info: Mapping[str, Any], config: Mapping[str, str | None]) -> FormKey:
    definition, value = info["definition"], info["value"]
    name, errors = definition["name"], tuple(value["errors"])
    return FormKey(
        name,
        definition["group"] or "Other",
        definition["documentation"] or "",
        definition["default_value"] or "",
        config.get(name) or "",
        errors,
        tuple(str(choice) for choice in value["recommended_values"]),
        definition["required"],
        definition["type"] == "PASSWORD",
        bool(errors) or definition["required"] or name in config or definition["importance"] == "HIGH",
    )


def _page(call: Call, checked: Checked) -> str:
    is_ready = bool(checked.keys) and not checked.problem
    plan: Seen[Any] | None = None
    if is_ready:
        plan = call.console.plan(call.conn_id, str(checked.config[NAME]), checked.config)
    return render(
        "create.html",
        **call.shell("New connector", "create"),
        checked=checked,
        text=json.dumps(dict(checked.config), indent=2, ensure_ascii=False),
        classes=[plugin["class"] for plugin in installed(connectors_only=True)],
        groups=list(dict.fromkeys(key.group for key in checked.keys)),
        is_ready=is_ready,
        plan=plan,
    )
