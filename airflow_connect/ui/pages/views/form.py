"""The form of a configuration: what was typed or pasted, checked key by key. New connectors and changed ones share it.

Literal secrets never get into a field. A value that is registered and must not be shown stands in the text as
`[hidden]`; left as it is, it stays what it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.infos import config_infos
from airflow_connect.api.config.values import HIDDEN
from airflow_connect.control.herder.plugins import installed as installed_plugins
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.validation import refuse_invalid, validated
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import connector_of
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.reporting.texts import format_count
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.calls import Call
from airflow_connect.ui.pages.views.hiding import shown_config

SET = "set:"
"""Prefix of the form fields that hold the value of one key."""
FROM = "from:"
"""Prefix of the form fields that choose a field of an Airflow connection, as a reference, for the value of a key."""
WAS = "was:"
"""Prefix of the form fields that hold what those have shown."""
LOGINS = ("access.key.id", ".user", ".username")
NAME, CLASS = "name", "connector.class"
START = {NAME: "", CLASS: ""}
Config = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class FormKey:
    """A key as a field of the form.

    Attributes:
        value: what the field shows; "" for a secret.
        was: what the text of the form says: a field with another value has been changed.
        is_hidden: it has a value that must not be shown.
        notes: what a run would do with it, such as that it has no effect.
        is_open: whether it is shown at once: it is set, required, wrong or important.
        is_first: whether a new connector likely needs it: it is set, required or wrong, or important without default.
    """

    name: str
    group: str
    documentation: str
    default: str
    value: str
    was: str
    errors: tuple[str, ...]
    notes: tuple[str, ...]
    choices: tuple[str, ...]
    is_required: bool
    is_secret: bool
    is_hidden: bool
    is_open: bool
    is_first: bool

    @property
    def connection_field(self) -> str:
        """The field of an Airflow connection that may hold the value: password, login, or ""."""
        return "password" if self.is_secret else "login" if self.name.endswith(LOGINS) else ""


@dataclass(frozen=True, slots=True)
class Checked:
    """A configuration that was looked at.

    Attributes:
        config: as it would be registered.
        text: of the form, as it was sent.
        stored: the registered configuration; None: it is a new connector.
        keys: of its class, by group.
        problem: why it cannot be registered, or "".
        notes: what its writer should know, and no field shows.
        only_as_dag: why it cannot be registered although a DAG could run it, or "".
    """

    config: Config = field(repr=False)
    text: Config = field(repr=False)
    stored: Config | None = field(default=None, repr=False)
    keys: tuple[FormKey, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    only_as_dag: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether a run would accept it."""
        return bool(self.keys) and not self.problem

    @property
    def shown_text(self) -> str:
        """The configuration as the text of the form; what is registered and must not be shown is `[hidden]`."""
        return json.dumps(_hidden_as_stored(self.config, self.stored), indent=2, ensure_ascii=False)

    def changes(self) -> list[tuple[str, str, str]]:
        """Keys that differ from the registered configuration: key, before, after; "" is not set."""
        if self.stored is None:
            return []
        before, after = shown_config(self.stored), shown_config(self.config)
        keys = sorted(key for key in {*self.stored, *self.config} if self.stored.get(key) != self.config.get(key))
        return [(key, before.get(key, ""), _told(key, before, after)) for key in keys]


def checked_form(call: Call, stored: Config | None = None, *, is_live: bool = False) -> Checked:
    """The configuration of a form, and its errors; offline but for references.

    Args:
        call: with the form.
        stored: the registered configuration, if the form changes one.
        is_live: the answer leaves the text of the form as it is; otherwise it becomes the whole configuration.
    """
    try:
        text = _text_of(call, stored)
        config = _with_fields(text, call)
    except ConnectError as error:
        return Checked(stored or START, stored or START, stored, problem=str(error))
    return checked(call, config, stored, text if is_live else config)


def checked(call: Call, config: Config, stored: Config | None = None, text: Config | None = None) -> Checked:
    """A configuration, and its errors."""
    text = config if text is None else text
    worker = call.console.worker(call.conn_id)
    own = call.console.installations.get(call.conn_id).settings.references.values
    try:
        known = call.console.references(call.conn_id, config).values
        infos = validated(str(config.get(CLASS) or ""), config, worker, known)["configs"]
    except RefusedError as refused:
        return Checked(config, text, stored, problem=refused.message)
    except ConnectError as error:
        return Checked(config, text, stored, problem=str(error))
    problem, findings = _problem(config, stored, worker, known), _findings(config, worker, known)
    # The worker resolves references of a registered connector, and may not know Airflow's.
    only_as_dag = _problem(config, stored, worker, own) if not problem and dict(known) != dict(own) else ""
    if stored is not None:
        problem, only_as_dag = problem or only_as_dag, ""
    shown, of_text = shown_config(config), shown_config(text)
    defined = [info for info in (*infos, *_of_converters(config)) if info["definition"] is not None]
    keys = tuple(_key(info, config, shown, text, of_text, findings) for info in defined)
    elsewhere = (set(findings) & set(config)) - {key.name for key in keys}
    notes = tuple(f"{name}: {note}" for name in sorted(elsewhere) for level, note in findings[name] if level != "error")
    return Checked(config, text, stored, keys, problem, notes, only_as_dag)


def form_values(call: Call, checked: Checked, plan: Seen[Any] | None) -> dict[str, Any]:
    """What the templates of the form need."""
    value = None if plan is None else plan.value
    ranges = [] if value is None else [(r, task.task) for task in value.tasks for r in task.ranges]
    totals = []
    if value is not None and value.tasks:
        totals = [("Tasks", format_count(len(value.tasks)))]
        if ranges:
            totals.append(("Records, at most", format_count(sum(len(r) for r, _ in ranges))))
    return {
        "checked": checked,
        "connections": call.visitor.connection_ids() if checked.keys else [],
        "classes": [plugin["class"] for plugin in installed_plugins(connectors_only=True, with_versions=False)],
        "groups": list(dict.fromkeys(key.group for key in checked.keys)),
        "plan": plan,
        "ranges": sorted(ranges, key=lambda found: (found[0].topic, found[0].partition, found[0].start)),
        "totals": totals,
    }


def _text_of(call: Call, stored: Config | None) -> dict[str, str | None]:
    """The text of the form, with what the page has hidden."""
    typed = call.field_of("config")
    parsed = connector_of(typed, "The configuration") if typed else {}
    text: dict[str, str | None] = {key: None if value is None else str(value) for key, value in parsed.items()}
    if stored is None:
        return text
    shown = shown_config(stored)
    return {key: stored[key] if _stands_for_stored(key, value, stored, shown) else value for key, value in text.items()}


def _stands_for_stored(key: str, value: str | None, stored: Config, shown: Mapping[str, str]) -> bool:
    return key in stored and shown[key] != stored[key] and value == shown[key]


def _with_fields(text: Config, call: Call) -> dict[str, str | None]:
    """The text, changed by those fields that somebody has changed: an empty one removes its key."""
    config = dict(text)
    for name, values in call.form.items():
        if name.startswith(FROM) and values[-1].strip():
            config[name.removeprefix(FROM)] = values[-1].strip()
    for name, values in call.form.items():
        key, value = name.removeprefix(SET), values[-1].strip()
        # A field that was left alone must not undo what was changed in the text.
        if not name.startswith(SET) or call.form.get(f"{WAS}{key}", [None])[-1] == value:
            continue
        if value:
            config[key] = value
        elif key != CLASS:  # Nothing chosen in the list of classes: the text names one.
            config.pop(key, None)
    return config


def _problem(config: Config, stored: Config | None, worker: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """Why it cannot be registered, or ""."""
    for key, value in config.items():
        if HIDDEN in (value or "") and (stored is None or stored.get(key) != value):
            return f"The value of {key} is {HIDDEN}, which stands for a secret that is not shown. Type the value."
    try:
        refuse_invalid(config, worker, known)
    except RefusedError as refused:
        return refused.message.partition("\nYou can also find")[0]
    if not config.get(NAME):
        return "A connector needs a name."
    if stored is not None and config[NAME] != stored.get(NAME, config[NAME]):
        return f"The name of {stored[NAME]} cannot be changed. Create a new connector instead, and delete this one."
    return ""


def _findings(config: Config, worker: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """What a run would say of each key: level and text; nothing if the configuration cannot even be read."""
    try:
        found = validate_connector(RunSpec(dict(config), worker, references=known))
    except ConnectError:  # `refuse_invalid` has read the same configuration, and tells why.
        return {}
    told: dict[str, list[tuple[str, str]]] = {}
    for finding in found:
        text = f"{finding['message']} {finding.get('suggestion', '')}".strip()
        told.setdefault(finding["key"], []).append((finding["level"], text))
    return told


def _of_converters(config: Config) -> list[dict[str, Any]]:
    """The settings of the converters that the configuration names, with the prefix that they have in it."""
    infos = []
    for prefix in ("key.converter", "value.converter"):
        found = plugins.installed(plugins.PluginKind.CONVERTER, config.get(prefix) or "")
        definition = getattr(plugins.load(found), "config_def", None) if found else None
        if definition is None:
            continue
        own = {key.removeprefix(f"{prefix}."): value for key, value in config.items() if key.startswith(f"{prefix}.")}
        for info in config_infos(prefix, definition, own)["configs"]:
            if info["definition"] is not None:
                name = f"{prefix}.{info['definition']['name']}"
                infos.append({**info, "definition": {**info["definition"], "name": name, "group": f"Of {prefix}"}})
    return infos


def _key(
    info: Mapping[str, Any],
    config: Config,
    shown: Mapping[str, str],
    text: Config,
    of_text: Mapping[str, str],
    findings: Mapping[str, list[tuple[str, str]]],
) -> FormKey:
    definition, value = info["definition"], info["value"]
    name, is_secret = definition["name"], definition["type"] == "PASSWORD"
    told = findings.get(name, [])
    own = tuple(value["errors"])
    errors = own or tuple(note for level, note in told if level == "error")
    is_needed = bool(errors) or definition["required"] or name in config
    is_important = definition["importance"] == "HIGH"
    return FormKey(
        name,
        definition["group"] or "Other",
        definition["documentation"] or "",
        definition["default_value"] or "",
        _visible(name, config, shown),
        _visible(name, text, of_text),
        errors,
        tuple(note for level, note in told if level != "error"),
        tuple(str(choice) for choice in value["recommended_values"]),
        definition["required"],
        is_secret,
        _is_hidden(name, config, shown),
        is_needed or is_important,
        is_needed or (is_important and not definition["default_value"]),
    )


def _is_hidden(name: str, config: Config, shown: Mapping[str, str]) -> bool:
    return bool(config.get(name)) and shown[name] != config[name]


def _visible(name: str, config: Config, shown: Mapping[str, str]) -> str:
    return "" if _is_hidden(name, config, shown) else config.get(name) or ""


def _hidden_as_stored(config: Config, stored: Config | None) -> dict[str, str | None]:
    """What somebody has typed just now stays, so that nothing has to be typed twice."""
    if stored is None:
        return dict(config)
    shown = shown_config(stored)
    return {key: shown[key] if key in stored and value == stored[key] else value for key, value in config.items()}


def _told(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The new value; two secrets look the same."""
    now = after.get(key, "")
    return f"{now}, another value" if now and now == before.get(key) else now
