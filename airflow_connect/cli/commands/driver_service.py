"""`airflow-connect driver-service`: run drivers on this machine for Airflow tasks that wait without a worker slot."""

from __future__ import annotations

import os
import threading
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable

from airflow_connect.cli.blocks import line
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.driver_service.contract import DEFAULT_PORT
from airflow_connect.runtime.driver_service.runs import Limits
from airflow_connect.runtime.driver_service.serving import TOKEN_ENV, ServiceSettings, read_token, serve

NAME = "driver-service"
HELP = "run drivers on this machine for tasks that wait without a worker slot"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for address, access and limits."""
    defaults = Limits()
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=_number(0, 65535), default=DEFAULT_PORT, help=f"default: {DEFAULT_PORT}; 0: a free one"
    )
    parser.add_argument(
        "--token-file", default="", metavar="FILE", help=f"file with the token of clients (default: ${TOKEN_ENV})"
    )
    parser.add_argument("--cert", default="", metavar="FILE", help="certificate of the service, PEM; none: plain HTTP")
    parser.add_argument("--key", default="", metavar="FILE", help="key of the certificate, if it is not in its file")
    parser.add_argument(
        "--at-once",
        type=_number(1, 1000),
        default=defaults.at_once,
        metavar="N",
        help=f"drivers that run at the same time; others wait (default: {defaults.at_once})",
    )
    parser.add_argument(
        "--waiting",
        type=_number(1, 100_000),
        default=defaults.waiting,
        metavar="N",
        help=f"runs that may wait; more are refused (default: {defaults.waiting})",
    )
    parser.add_argument(
        "--lease",
        type=_number(1, 7 * 24 * 3600),
        default=int(defaults.lease_s),
        metavar="SECONDS",
        help=f"end a run after this time without a request (default: {defaults.lease_s:.0f})",
    )


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Serve until a signal."""
    settings = ServiceSettings(
        host=arguments.host,
        port=arguments.port,
        token=read_token(arguments.token_file),
        certfile=arguments.cert,
        keyfile=arguments.key,
        limits=Limits(at_once=arguments.at_once, waiting=arguments.waiting, lease_s=float(arguments.lease)),
    )
    settings.check()
    os.environ.pop(TOKEN_ENV, None)  # Drivers inherit the environment, and run the code of plugins.
    terminal.hide({}, [settings.token])

    def tell(text: str) -> None:
        terminal.note(line(text))

    def listening(url: str) -> None:
        limits = settings.limits
        tell(f"The driver service listens at {url}: {limits.at_once} at once, lease {limits.lease_s:g} s.")
        if not settings.token:
            tell("It has no token: every user of this machine can start programs as the user of this service.")

    def work(stopping: threading.Event) -> None:
        serve(settings, tell, stopping, listening)

    run_interruptible(work, terminal)
    return CommandOutcome("The driver service has ended.")


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return int(text)

    return parse
