"""Requests that are refused, with the status code and the text of Kafka Connect 4.3 (recorded REST exchanges)."""

from __future__ import annotations

from airflow_connect.errors import ConnectError

BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT = 400, 403, 404, 409


class RefusedError(ConnectError):
    """A request that cannot be carried out. Clients of Kafka Connect compare its text, so that one stays as it is.

    Attributes:
        status: HTTP status code.
    """

    code = "control.refused"

    def __init__(self, message: str, status: int = BAD_REQUEST) -> None:
        """`message`: Kafka Connect's text."""
        super().__init__(message)
        self.status = status


def no_connector(name: str) -> RefusedError:
    """There is no such connector: requests that read, change or delete it."""
    return RefusedError(f"Connector {name} not found", NOT_FOUND)


def unknown_connector(name: str) -> RefusedError:
    """The text of pause, resume and stop."""
    return RefusedError(f"Unknown connector {name}", NOT_FOUND)


def nothing_to_restart(name: str) -> RefusedError:
    """The text of restarts."""
    return RefusedError(f"Unknown connector: {name}", NOT_FOUND)


def not_stopped(name: str) -> RefusedError:
    """Offsets of a connector that may run cannot be changed."""
    return RefusedError(
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the"
        f" specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
    )


def stale() -> RefusedError:
    """Another request has changed the connector in the meantime."""
    return RefusedError(
        "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config"
        " change)",
        CONFLICT,
    )
