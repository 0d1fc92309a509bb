"""An S3 server for tests on loopback: requests are real, buckets are in memory."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # They take 0.3 s, and each pytest process imports this module when it collects the tests.
    from boto3 import session
    from moto import server as moto_server

BUCKET = "vel"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class S3Server:
    """A context manager. The server can be stopped and restarted on its port; buckets are kept."""

    def __init__(self) -> None:
        self._server: moto_server.ThreadedMotoServer | None = None
        self.port = 0
        # Otherwise Boto would ask the machine's metadata service for keys.
        self._environment = mock.patch.dict(os.environ, {**KEYS, "AWS_EC2_METADATA_DISABLED": "1"})

    def __enter__(self) -> S3Server:
        self._environment.start()
        self.start()
        self.client.create_bucket(Bucket=BUCKET)
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self.stop()
        self._environment.stop()

    def start(self) -> None:
        self._server = moto_server.ThreadedMotoServer(
            ip_address="127.0.0.1", port=self.port, verbose=False
        )
        self._server.start()
        self.port = self._server.get_host_and_port()[1]

    def stop(self) -> None:
        assert self._server is not None
        self._server.stop()
        self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Any:
        return session.Session().client("s3", endpoint_url=self.url, region_name="us-east-1")

    def keys(self, prefix: str = "") -> list[str]:
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return sorted(row["Key"] for row in found.get("Contents", []))

    @property
    def storage_url(self) -> str:
        return f"s3://{BUCKET}/team?endpoint_url={self.url}&region_name=us-east-1"
