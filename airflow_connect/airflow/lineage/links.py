"""Links of a task in Airflow's UI to what a run wrote.

Airflow calls `get_link` where the task ran, keeps the URL as an XCom, and shows that one. So the classes are not listed
under `extra-links` of the provider: for a listed class it would call `get_link` in the API server, which knows no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink

from airflow_connect.airflow.lineage.default_assets import default_assets

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

_CONSOLE = "https://console.aws.amazon.com/s3/buckets"


class WrittenObjectsLink(BaseOperatorLink):
    """The directory of an S3 sink in the console of AWS; no link for other stores, which have no page to lead to."""

    name = "Written objects"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The URL, or ""."""
        known = operator.lineage()
        if known.connector.get("store.url"):
            return ""
        found = [asset.uri for asset in default_assets(known.connector, known.worker)[1]]
        parts = [urlsplit(uri) for uri in found if uri.startswith("s3://")]
        if not parts:
            return ""
        # With several topics, the directory that all of them share.
        path = parts[0].path if len(parts) == 1 else parts[0].path.rpartition("/")[0]
        region = known.connector.get("s3.region")
        where = f"region={quote(str(region), safe='')}&" if region and "${" not in str(region) else ""
        prefix = quote(path.strip("/") + "/", safe="") if path.strip("/") else ""
        return f"{_CONSOLE}/{parts[0].netloc}?{where}prefix={prefix}"
