"""S3 as a store: unfinished multipart uploads are staged, completing them publishes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_connect.stores.s3.settings import S3Settings

if TYPE_CHECKING:
    from airflow_connect.stores.s3.publish import S3Publisher
    from airflow_connect.stores.s3.staging import S3Stager


@dataclass(frozen=True, slots=True)
class S3Store:
    """A bucket.

    Attributes:
        settings: address, credentials, sizes.
    """

    settings: S3Settings

    @property
    def name(self) -> str:
        """`s3://bucket`, with the endpoint if the store is not Amazon's."""
        endpoint = f" at {self.settings.endpoint}" if self.settings.endpoint else ""
        return f"s3://{self.settings.bucket}{endpoint}"

    def stager(self, run_id: str) -> S3Stager:
        """Stages uploads; `run_id` goes into every object's metadata."""
        from airflow_connect.stores.s3.staging import S3Stager

        return S3Stager(self.settings, run_id)

    def publisher(self, *, probe_prefix: str, overwrite: bool) -> S3Publisher:
        """Completes uploads."""
        from airflow_connect.stores.s3.publish import S3Publisher

        settings = replace(self.settings, conditional_writes=False) if overwrite else self.settings
        return S3Publisher(settings, probe_prefix=probe_prefix)
