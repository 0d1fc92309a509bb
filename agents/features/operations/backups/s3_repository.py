"""A place for backups in S3-compatible storage. Requires the extra `vel[s3]`."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl, urlsplit

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.manifest import MOST_BYTES, NAME
from agents.features.operations.backups.repository import Repository
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # They belong to an optional extra, and take 0.3 s.
    from boto3 import exceptions as boto3_errors  # type: ignore[import-untyped]
    from botocore import exceptions as botocore_errors

    from agents import s3_storage

logger = logging.getLogger(__name__)

_OPTIONS = ("endpoint_url", "region_name")
_STALE_SECONDS = 900.0
_RENEW_SECONDS = 60.0
"""A process renews the object of its lock this often. After a crash it counts for 15 minutes."""


def open_s3(url: str) -> Repository:
    """Return the repository of an S3 address.

    boto3 finds the keys: in AWS_ACCESS_KEY_ID, profiles or roles.

    Args:
        url: `s3://BUCKET` or `s3://BUCKET/PREFIX`, optionally with
            `?endpoint_url=…&region_name=…`.

    Raises:
        BackupRefused: The address is invalid, or boto3 is not installed.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    if not parts.netloc or parts.username or parts.password or set(options) - set(_OPTIONS):
        raise BackupRefused(
            "Expected s3://bucket/prefix, optionally with ?endpoint_url=…&region_name=…. Set keys "
            "in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    try:
        storage = s3_storage.PrivateS3(bucket_name=parts.netloc, **options)
    except ImportError:
        raise BackupRefused(
            "Backups in S3-compatible storage need the extra: pip install 'vel[s3]'."
        ) from None
    return S3Repository(storage, parts.netloc, parts.path)


class S3Repository(Repository):
    """Objects and manifests below a prefix of a bucket.

    Locks are objects. A process first writes its own, then looks for those of others: of two that
    exclude each other, at least one sees the other.
    """

    def __init__(self, storage: Any, bucket: str, path: str) -> None:
        self._bucket = bucket
        self._prefix = f"{path.strip('/')}/" if path.strip("/") else ""
        self._storage = storage
        self.name = f"s3://{bucket}/{path.strip('/')}"

    @property
    def _client(self) -> Any:
        return self._storage.connection.meta.client

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the storage into one line for people."""
        try:
            yield
        except (
            botocore_errors.BotoCoreError,
            botocore_errors.ClientError,
            boto3_errors.Boto3Error,
        ) as error:
            raise BackupRefused(
                f"The storage {self.name} refused or does not answer: {error}. Check the address, "
                "the keys and their permissions."
            ) from error

    def prepare(self) -> None:
        self.names()

    def shared(self) -> AbstractContextManager[None]:
        return self._locked("use", {"prune"}, "`vel backup prune` deletes old backups")

    def alone(self) -> AbstractContextManager[None]:
        return self._locked(
            "prune", {"use", "prune"}, "Another backup, check or restore uses backups"
        )

    @contextmanager
    def _locked(self, kind: str, excluded: set[str], who: str) -> Iterator[None]:
        key = f"{self._prefix}locks/{kind}-{secrets.token_hex(8)}"
        ended = threading.Event()

        def write() -> None:
            body = json.dumps({"kind": kind}).encode()
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body)

        def renew() -> None:
            while not ended.wait(_RENEW_SECONDS):
                try:
                    with self._explained():
                        write()
                except BackupRefused as refusal:
                    logger.warning("The lock of a backup was not renewed: %s", refusal)

        with self._explained():
            write()
        thread = threading.Thread(target=renew, name="vel-backup-lock", daemon=True)
        thread.start()
        try:
            for row in self._listed("locks/"):
                other = row["Key"].rpartition("/")[2].partition("-")[0]
                age = time.time() - row["LastModified"].timestamp()
                if row["Key"] != key and other in excluded and age < _STALE_SECONDS:
                    raise BackupRefused(
                        f"{who} in {self.name}. Try again when it has ended. After a crash, wait "
                        f"{_STALE_SECONDS / 60:.0f} minutes."
                    )
            yield
        finally:
            ended.set()
            thread.join()
            with self._explained():
                self._client.delete_object(Bucket=self._bucket, Key=key)

    def _listed(self, below: str) -> Iterator[dict[str, Any]]:
        with self._explained():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=f"{self._prefix}{below}"
            )
            for page in pages:
                yield from page.get("Contents", ())

    def _object(self, digest: str) -> str:
        return f"{self._prefix}objects/{digest[:2]}/{digest}"

    def digests(self) -> dict[str, int]:
        return {row["Key"].rpartition("/")[2]: row["Size"] for row in self._listed("objects/")}

    def keep(self, file: BinaryIO, digest: str) -> None:
        self._upload(file, self._object(digest))

    def _upload(self, file: BinaryIO, key: str) -> None:
        with self._explained():
            self._client.upload_fileobj(_Open(file), self._bucket, key)

    def open(self, digest: str) -> BinaryIO:
        found = self._get(self._object(digest))
        if found is None:
            raise BackupRefused(
                f"The object {digest[:12]} of the backup is missing. Use another backup."
            )
        return found

    def _get(self, key: str) -> BinaryIO | None:
        with self._explained():
            try:
                body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
            except botocore_errors.ClientError as error:
                if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                    return None
                raise
        return cast("BinaryIO", _Body(self, body))

    def delete(self, digest: str) -> None:
        with self._explained():
            self._client.delete_object(Bucket=self._bucket, Key=self._object(digest))

    def names(self) -> list[str]:
        found = [row["Key"].rpartition("/")[2] for row in self._listed("snapshots/")]
        names = [each.removesuffix(".json") for each in found if each.endswith(".json")]
        return sorted(name for name in names if NAME.fullmatch(name))

    def _manifest(self, name: str) -> str:
        return f"{self._prefix}snapshots/{name}.json"

    def keep_manifest(self, name: str, data: bytes) -> None:
        self._upload(BytesIO(data), self._manifest(name))

    def _manifest_bytes(self, name: str) -> bytes | None:
        found = self._get(self._manifest(name))
        if found is None:
            return None
        with found:
            return found.read(MOST_BYTES + 1)

    def remove_remains(self) -> None:
        with self._explained():
            found = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=self._prefix)
            for each in found.get("Uploads", ()):
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=each["Key"], UploadId=each["UploadId"]
                )

    def delete_manifest(self, name: str) -> None:
        with self._explained():
            self._client.delete_object(Bucket=self._bucket, Key=self._manifest(name))


class _Open:
    """A file that stays open: `upload_fileobj` would close it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        """Leave the file open."""


class _Body:
    """The content of an object, with errors for people."""

    def __init__(self, repository: S3Repository, body: Any) -> None:
        self._repository = repository
        self._body = body

    def read(self, size: int) -> bytes:
        with self._repository._explained():
            return bytes(self._body.read(size))

    def __enter__(self) -> _Body:
        return self

    def __exit__(self, *_: object) -> None:
        self._body.close()
