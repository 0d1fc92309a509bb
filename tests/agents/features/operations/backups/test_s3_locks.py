"""The lock of a backup in S3 stays valid when the storage fails for a moment."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import pytest
from botocore.exceptions import EndpointConnectionError

from agents.features.operations.backups import s3_repository
from agents.features.operations.backups.s3_repository import S3Repository
from tests.support.hang import HANG


def test_a_lock_is_renewed_after_a_failed_renewal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(s3_repository, "_RENEW_SECONDS", 0.01)
    renewed = threading.Event()
    writes = 0

    def put_object(**_: object) -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            raise EndpointConnectionError(endpoint_url="http://storage")
        if writes > 2:
            renewed.set()

    storage = Mock()
    client = storage.connection.meta.client
    client.put_object = put_object
    client.get_paginator.return_value.paginate.return_value = []

    with S3Repository(storage, "bucket", "backups").shared():
        assert renewed.wait(HANG)

    assert [record.levelname for record in caplog.records] == ["WARNING"]
