"""Object storage with short timeouts, because a run keeps its lease while it waits."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from storages.backends.s3 import S3Storage

CONNECT_SECONDS = 5
READ_SECONDS = 30
ATTEMPTS = 3


class PrivateS3(S3Storage):
    """Objects of a private bucket; requires the extra `vel[s3]`.

    Existing objects are replaced: names are digests of contents.
    """

    def get_default_settings(self) -> dict[str, Any]:
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            s3={"addressing_style": "path"},
        )
        return {
            **super().get_default_settings(),
            "file_overwrite": True,
            "default_acl": None,
            "client_config": config,
        }
