"""A real S3 server: s3proxy on a folder of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_connect.devstack.launching.java_server import JavaServer

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

DEFAULT_HEAP_MB = 768


class S3Server(JavaServer):
    """A running S3 server with the features that exactly-once needs: conditional writes, checksums, signatures.

    Differences from Amazon S3 that callers must know:
    - A key that is a prefix folder of another one (`x` and `x/y`) is refused, because keys are files.
    - `Tagging` on CreateMultipartUpload and lifecycle rules are answered with 501.

    Attributes:
        endpoint_url: `http://127.0.0.1:<port>`; buckets are addressed by path.
        access_key: the one access key that is accepted, with `secret_key`.
        region: the region to sign for.
        pid: process id of the server.
    """

    name = "s3proxy 4.1.0"
    lock_name = "s3proxy-4.1.0"
    port_count = 1
    access_key = "test"
    secret_key = "testsecret1"
    region = "us-east-1"

    @classmethod
    def start(cls, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB) -> Self:
        """Start a server on a free port and return when it answers.

        Args:
            data_dir: where objects go and stay; give a folder of /dev/shm for speed. Without it a temporary
                folder is used and removed by `stop()`.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: no Java, no jars, or the server did not come up (with the end of its log).
        """
        server = cls(data_dir, heap_mb)
        server._start_on_free_ports()
        return server

    @property
    def endpoint_url(self) -> str:
        """Return `http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self.ports[0]}"

    def client(self, endpoint_url: str | None = None, **config: Any) -> S3Client:
        """Return a boto3 client for this server.

        Args:
            endpoint_url: another address of the same server, such as that of a fault proxy.
            config: arguments of botocore's `Config`, such as `retries`.
        """
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=endpoint_url or self.endpoint_url,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(**{"s3": {"addressing_style": "path"}, **config}),
        )

    def _program(self) -> Sequence[str]:
        objects = self.data_dir / "objects"
        objects.mkdir(exist_ok=True)
        settings = {
            "s3proxy.endpoint": self.endpoint_url,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": self.access_key,
            "s3proxy.credential": self.secret_key,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.identity": "unused",
            "jclouds.credential": "unused",
            "jclouds.filesystem.basedir": str(objects),
        }
        config = self.data_dir / "s3proxy.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return ["org.gaul.s3proxy.Main", "--properties", str(config)]
