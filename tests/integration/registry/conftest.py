"""A real Schema Registry, started for the first test that asks for it."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.devstack.schema_registry import SchemaRegistry


class Registry:
    """The registry, and requests to it that are none of a converter's."""

    def __init__(self, server: SchemaRegistry) -> None:
        self.url = server.url

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """One request; raises for an answer that is not 2xx."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        # On a busy machine the server now and then hangs up on a new connection; every request here can be repeated.
        for _ in range(3):
            with contextlib.suppress(ConnectionError), urllib.request.urlopen(request, timeout=30) as reply:
                return json.load(reply)
        raise AssertionError(f"The registry hung up on {method} {path} three times.")

    def register(self, subject: str, schema: Any, references: list[dict[str, Any]] | None = None, **more: Any) -> int:
        """Register a schema, as JSON or as text."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "references": references or [], **more}
        found: int = self.request("POST", f"/subjects/{subject}/versions", body)["id"]
        return found

    def versions(self, subject: str) -> list[int]:
        """Versions of a subject."""
        found: list[int] = self.request("GET", f"/subjects/{subject}/versions")
        return found

    def set_compatibility(self, subject: str, level: str) -> None:
        """BACKWARD, FULL, NONE..."""
        self.request("PUT", f"/config/{subject}", {"compatibility": level})


@pytest.fixture(scope="session")
def schema_registry(registry_server: SchemaRegistry) -> Registry:
    """Requests to the registry; every test has subjects of its own."""
    return Registry(registry_server)


@pytest.fixture
def make_converter(request: pytest.FixtureRequest, schema_registry: Registry) -> Callable[..., Any]:
    """Make a configured `CONVERTER` of the module: `make_converter(is_key=False, **config)`; `_` stands for `.`."""

    def make(is_key: bool = False, **config: str) -> Any:
        converter = request.module.CONVERTER()
        given = {key.replace("_", "."): value for key, value in config.items()}
        converter.configure({"schema.registry.url": schema_registry.url, **given}, is_key)
        return converter

    return make
