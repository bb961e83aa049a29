"""Bulk requests against answers that do not come from the search server: nothing is rejected because of them."""

from __future__ import annotations

import json

import pytest

from airflow_connect.api.record import SinkRecord
from airflow_connect.connectors.search.bulks import Bulk, ListedDocuments
from airflow_connect.connectors.search.client import SearchClient
from airflow_connect.connectors.search.config import SearchSinkConfig
from airflow_connect.connectors.search.documents import Action
from airflow_connect.connectors.search.sending import BulkSender
from airflow_connect.connectors.search.targets import Target
from airflow_connect.errors import SearchError
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, times

NGINX = b"<html><h1>400 Bad Request</h1>The plain HTTP request was sent to HTTPS port</html>"
MALFORMED = {"error": {"type": "illegal_argument_exception", "reason": "Malformed action"}, "status": 400}


def sent(answer: Answer, count: int = 4) -> list[int]:
    """Offsets of the records that were rejected when every request got this answer."""
    records = [SinkRecord(topic="t", partition=0, offset=n, timestamp=None) for n in range(count)]
    documents = ListedDocuments([Action(b"{}\n{}\n", "") for _ in records], records)
    with S3Interceptor(times(99, answer)) as server:
        raw = {"name": "s", "connector.class": "ElasticsearchSink", "topics": "t", "connection.url": server.url}
        config = SearchSinkConfig.from_config(raw)
        client = SearchClient(config.connection)
        sender = BulkSender(client, config)
        try:
            sender.send(Bulk(Target("t", "/t/_bulk"), documents))
            sender.wait()
            return [record.offset for record, _ in sender.take_rejected()]
        finally:
            sender.close()
            client.close()


def test_bulk_400_of_the_server_rejects_the_documents() -> None:
    assert sent(Answer(400, json.dumps(MALFORMED).encode(), {"content-type": "application/json"})) == [0, 1, 2, 3]


@pytest.mark.parametrize("status", [400, 404, 405, 421])
def test_bulk_refused_by_a_proxy_fails_and_rejects_nothing(status: int) -> None:
    alone = " with the document of the record at t-0@0 alone" if status == 400 else ""
    with pytest.raises(SearchError, match=rf"refused to execute a bulk request for t{alone} \({status}\): <html>"):
        sent(Answer(status, NGINX, {"content-type": "text/html"}))
