"""Fixtures of the S3 sink's end-to-end tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from moto.server import ThreadedMotoServer

from tests.support.copies.s3 import Sink

MakeSink = Callable[..., Sink]


@pytest.fixture(scope="package")
def moto_url() -> Iterator[str]:
    """A server that knows tags, ACL, encryption and STS, which s3proxy does not. It proves no exactly-once."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
