"""What small commands ask about registered connectors: tasks, topics, plugins, log levels."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import Actions, add_name, bullet, shown_config
from airflow_connect.cli.control.target import connectors_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.reporting.texts import Table, plural

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


def task_actions(parser: ArgumentParser) -> None:
    """The actions of `tasks`."""
    actions = Actions(parser)
    add_name(actions.add("list", _tasks, "the tasks of a connector, their states and their configurations"))
    restart = actions.add("restart", _restart_task, "restart a task; a bounded run has all tasks of the connector")
    add_name(restart)
    restart.add_argument("task", type=int, help="number of the task")


def topic_actions(parser: ArgumentParser) -> None:
    """The actions of `topics`."""
    actions = Actions(parser)
    add_name(actions.add("list", _topics, "the topics that a connector has used"))
    add_name(actions.add("reset", _reset_topics, "forget the topics that a connector has used"))


def plugin_actions(parser: ArgumentParser) -> None:
    """The actions of `plugins`."""
    actions = Actions(parser)
    every = actions.add("list", _plugins, "the installed plugins")
    every.add_argument("--all", action="store_true", help="transformations, predicates and converters as well")
    keys = actions.add("keys", _keys, "the configuration keys of a plugin")
    keys.add_argument("plugin", help="class or alias, such as S3Sink")


def logger_actions(parser: ArgumentParser) -> None:
    """The actions of `loggers`."""
    actions = Actions(parser)
    actions.add("list", _loggers, "log levels of the worker that answers")
    level = actions.add("set", _set_level, "set a log level, of the logger and all below it")
    level.add_argument("logger", help="name of the logger, or root")
    level.add_argument("level", choices=LEVELS, type=str.upper, help=f"one of {', '.join(LEVELS)}")
    level.add_argument("--cluster", action="store_true", help="in every worker, not only the one that answers")


def _tasks(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)
    tasks = connectors.tasks(arguments.name)
    states = {part["id"]: part["state"] for part in connectors.states(arguments.name)["tasks"]}
    shown = [
        {
            "task": task["id"]["task"],
            "state": states.get(task["id"]["task"], ""),
            "config": shown_config(task["config"]),
        }
        for task in tasks
    ]
    rows = [(str(task["task"]), str(task["state"]), str(task["config"].get("task.class", ""))) for task in shown]
    lines: list[Block] = [Table(("TASK", "STATE", "CLASS"), rows, "><<")] if rows else ["No tasks."]
    return CommandOutcome(f"{plural(len(shown), 'task')}.", {"tasks": shown}, lines)


def _restart_task(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors_of(arguments, terminal).restart_task(arguments.name, arguments.task)
    done = f"{arguments.name}: restart of task {arguments.task} requested"
    return CommandOutcome(f"{done}.", {"name": arguments.name, "task": arguments.task}, [bullet(done)])


def _topics(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    topics = connectors_of(arguments, terminal).topics(arguments.name)
    return CommandOutcome(f"{plural(len(topics), 'topic')}.", {"topics": topics}, list(topics) or ["No topics yet."])


def _reset_topics(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors_of(arguments, terminal).reset_topics(arguments.name)
    done = f"{arguments.name}: topics forgotten"
    return CommandOutcome(f"{done}.", {"name": arguments.name}, [bullet(done)])


def _plugins(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    found = connectors_of(arguments, terminal).plugins(connectors_only=not arguments.all)
    rows = [(entry["type"], str(entry.get("version") or ""), entry["class"]) for entry in found]
    return CommandOutcome(
        f"{plural(len(found), 'plugin')}.", {"plugins": found}, [Table(("TYPE", "VERSION", "CLASS"), rows, "<<<")]
    )


def _keys(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    keys = connectors_of(arguments, terminal).plugin_keys(arguments.plugin)
    rows = [
        (
            key["name"],
            str(key["type"]),
            "required" if key.get("required") else str(key.get("default_value") or ""),
            " ".join(str(key.get("documentation") or "").split()),
        )
        for key in keys
    ]
    table = Table(("KEY", "TYPE", "DEFAULT", "MEANING"), rows, "<<<<")
    return CommandOutcome(f"{plural(len(keys), 'key')}.", {"keys": keys}, [table])


def _loggers(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    found = connectors_of(arguments, terminal).loggers()
    rows = [(name, str(known["level"])) for name, known in sorted(found.items())]
    return CommandOutcome(
        f"{plural(len(found), 'logger')}.", {"loggers": found}, [Table(("LOGGER", "LEVEL"), rows, "<<")]
    )


def _set_level(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    changed = connectors_of(arguments, terminal).set_level(arguments.logger, arguments.level, cluster=arguments.cluster)
    where = "in every worker" if arguments.cluster else f"in {plural(len(changed), 'logger')}"
    lines: list[Block] = [bullet(f"{arguments.logger}: {arguments.level} {where}")]
    lines += [line(name, indent=4) for name in changed]
    return CommandOutcome(f"{arguments.level} {where}.", {"changed": changed}, lines)
