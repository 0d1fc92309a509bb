"""The manifest of a backup: the list of its contents, signed with a key of the installation.

A manifest decides which files a restore writes, so it is checked in full before any other use: the
signature first, then each field. Unknown fields are refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from agents.doors.cli.terminal import one_line
from agents.features.operations.backups.errors import BackupRefused

FORMAT = 1
"""The version of the format. A change that older versions of Vel cannot read raises it."""
MOST_BYTES = 512 * 1024**2
"""The limit of a manifest, which is read as a whole. One with a million files has 250 MB."""
MOST_DEPTH = 200
"""The limit of directories above a file. Deeper files are not backed up."""
AREAS = ("workspaces", "snapshots", "archives", "set-aside")
"""The directories of the data directory that a backup contains."""
NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
"""The name of a backup: the time in UTC with its microseconds, and a random number."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_LABEL = b"vel: backups, version 1"
_SIGNATURE = "signature"

# Parts of the canonical form, whose members are in the order of their names.
_FORMAT = re.compile(rb',"format":([0-9]{1,9}),')
_KEY_ID = re.compile(rb',"key_id":"([0-9a-f]{16})",')
_KEYS = re.compile(
    rb',"keys":\{"ciphertext":"(?P<ciphertext>[A-Za-z0-9+/=]{0,1000000})",'
    rb'"nonce":"(?P<nonce>[A-Za-z0-9+/=]{0,99})","salt":"(?P<salt>[A-Za-z0-9+/=]{0,99})"\},'
)
_DATA_DIRECTORY = re.compile(rb'\{"created_at":"[^"]*","data_directory":"([0-9a-f]{32})",')
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_END = re.compile(
    rb',"name":"(?P<name>[0-9TZa-f-]+)",(?P<member>"signature":"(?P<signature>[0-9a-f]{64})",)'
    rb'"skipped":\{[^{}]*\},"vel":"[^"]*"\}\Z'
)
_LONGEST_END = 64 * 1024


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a backup. `size` is in bytes, `mode` has the permission bits.

    `stamp` is `inode:size:mtime:ctime`, by which the next backup recognizes an unchanged file. It
    is "" if the file had changed just before.
    """

    path: str
    size: int
    mode: int
    uid: int
    gid: int
    sha256: str
    mtime_ns: int = 0
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class StoredDirectory:
    path: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class TableContent:
    """The number of rows of a table, and the SHA-256 of their values."""

    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredDatabase:
    """The database: the object with its copy, and the expected contents."""

    engine: str
    version: str
    sha256: str
    size: int
    tables: dict[str, TableContent]
    migrations: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SealedKeys:
    """The keys of the installation, encrypted with a passphrase. All values are Base64."""

    salt: str
    nonce: str
    ciphertext: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One backup."""

    name: str
    created_at: str
    vel: str
    database: StoredDatabase
    files: list[StoredFile]
    directories: list[StoredDirectory]
    skipped: dict[str, int] = field(default_factory=dict)
    """How many names were left out, by the reason."""
    missing: list[str] = field(default_factory=list)
    """Files that rows name and that the installation had already lost."""
    keys: SealedKeys | None = None
    data_directory: str = ""
    """The random name of the data directory whose files it has. Empty: made by an older version."""
    key_id: str = ""
    format: int = FORMAT

    @property
    def file_bytes(self) -> int:
        return sum(each.size for each in self.files)

    def signed(self, secret: str) -> bytes:
        """Return the signed manifest as bytes."""
        key = signing_key(secret)
        body = {**asdict(self), "key_id": key_id(key)}
        return canonical({**body, _SIGNATURE: _signature(key, canonical(body))})


def signing_key(secret: str) -> bytes:
    """Return the key for manifests that belongs to a secret key of Django."""
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_LABEL).derive(
        secret.encode()
    )


def key_id(key: bytes) -> str:
    """Return a short name of a key, which does not reveal it."""
    return hmac.new(key, b"id", hashlib.sha256).hexdigest()[:16]


def canonical(value: Any) -> bytes:
    """Return a JSON value as bytes, always the same ones: sorted keys, no spaces, ASCII.

    Lone surrogates of file names become escapes.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _signature(key: bytes, *parts: bytes | memoryview) -> str:
    made = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        made.update(part)
    return made.hexdigest()


class UnreadManifest:
    """The bytes of a manifest that was not checked yet.

    Anybody who can write to the place may have made them. JSON can need thirty times its size in
    memory, so the signature is checked over the bytes, and only `accept` parses them.
    """

    def __init__(self, name: str, data: bytes) -> None:
        """Find the signature. Raises `BackupRefused` for other data, and for newer formats."""
        self.name = name
        self._data = data
        head = _FORMAT.search(data)
        if head is not None and int(head[1]) > FORMAT:
            raise BackupRefused(
                f"The backup {name} has the format {int(head[1])}, and this version of Vel reads "
                f"up to {FORMAT}. Use the version of Vel that made it, or a later one."
            )
        end = _END.search(data, max(0, len(data) - _LONGEST_END))
        if end is None:
            raise BackupRefused(
                f"The manifest of {name} is damaged or incomplete. Use another backup."
            )
        self._end = end

    @property
    def has_other_name(self) -> bool:
        """Whether it is stored under another name than the one in it."""
        return self._end["name"] != self.name.encode()

    @property
    def data_directory(self) -> str:
        """The random name of the data directory whose files it has; empty if it has none."""
        found = _DATA_DIRECTORY.match(self._data)
        return "" if found is None else found[1].decode()

    def keys(self) -> SealedKeys | None:
        """Return the encrypted keys, or None. They are only believed if a passphrase opens them."""
        found = _KEYS.search(self._data)
        return None if found is None else SealedKeys(**_texts(found))

    def is_signed_with(self, secrets: Iterable[str]) -> bool:
        """Return whether one of the secret keys has signed exactly these contents."""
        if self.has_other_name:  # it is not the backup that was signed
            return False
        view = memoryview(self._data)
        before, after = view[: self._end.start("member")], view[self._end.end("member") :]
        given = self._end["signature"]
        return any(
            hmac.compare_digest(_signature(signing_key(secret), before, after).encode(), given)
            for secret in secrets
        )

    def names_key_of(self, secrets: Iterable[str]) -> bool:
        """Return whether the manifest names one of the secret keys as its signer.

        Does not check the signature.
        """
        found = _KEY_ID.search(self._data)
        return found is not None and found[1].decode() in {
            key_id(signing_key(secret)) for secret in secrets
        }

    def named_objects(self) -> Iterator[str]:
        """Yield the names of all objects of the backup, and hashes that name no object.

        Does not check the signature.
        """
        return (found[1].decode() for found in _SHA256.finditer(self._data))

    def accept(self) -> Manifest:
        """Parse and check all fields, and return the manifest. Does not check the signature.

        Call this after `is_signed_with`, or if a person trusts the authors of the backup.

        Raises:
            BackupRefused: A field is missing, unknown or invalid.
        """
        try:
            body = json.loads(self._data)
            del body[_SIGNATURE]
            return _checked(self.name, body)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise _bad(self.name, str(error)) from None


def _texts(found: re.Match[bytes]) -> dict[str, str]:
    return {name: value.decode() for name, value in found.groupdict().items()}


def _bad(name: str, why: str = "") -> BackupRefused:
    more = f" ({one_line(why, 120)})" if why else ""
    return BackupRefused(f"The manifest of {name} is invalid{more}. Use another backup.")


def _checked(name: str, body: dict[str, Any]) -> Manifest:
    if body.get("format") != FORMAT or body.get("name") != name or not NAME.fullmatch(name):
        raise ValueError("its name or format is another one")
    raw = body["database"]
    tables = {str(key): _from(TableContent, value) for key, value in raw["tables"].items()}
    migrations = [(app, migration) for app, migration in raw["migrations"]]
    _expect(str, *(part for pair in migrations for part in pair))
    database = _from(StoredDatabase, {**raw, "tables": tables, "migrations": migrations})
    files = [_from(StoredFile, each) for each in body["files"]]
    directories = [_from(StoredDirectory, each) for each in body["directories"]]
    keys = None if body["keys"] is None else _from(SealedKeys, body["keys"])
    found = Manifest(
        **{
            **body,
            "database": database,
            "files": files,
            "directories": directories,
            "keys": keys,
        }
    )
    _expect(
        str,
        found.created_at,
        found.vel,
        found.key_id,
        found.data_directory,
        *found.missing,
        *found.skipped,
    )
    _expect(int, *found.skipped.values())
    for content in (database, *files, *tables.values()):
        if not _DIGEST.fullmatch(content.sha256):
            raise ValueError("a hash is no SHA-256")
    _check_tree(files, directories)
    return found


def _check_tree(files: Sequence[StoredFile], directories: Sequence[StoredDirectory]) -> None:
    entries: list[StoredFile | StoredDirectory] = [*files, *directories]
    for each in entries:
        check_path(each.path)
        if not 0 <= each.mode <= 0o777 or min(each.uid, each.gid) < 0:
            raise ValueError(f"{each.path!a} has an invalid mode or owner")
    paths = [each.path for each in entries]
    if len(set(paths)) != len(paths):
        raise ValueError("a path is there twice")
    known = {each.path for each in directories}
    for path in paths:
        above = path.rpartition("/")[0]
        if above and above not in known:
            raise ValueError(f"{path!a} is in no directory of the backup")


def check_path(path: str) -> None:
    """Raise `ValueError` unless the path stays in the areas of a backup."""
    parts = path.split("/")
    if parts[0] not in AREAS or len(parts) > MOST_DEPTH + 1:
        raise ValueError(f"{path!a} is no path of a backup")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{path!a} leaves its directory")


def _from(kind: type[Any], values: Any) -> Any:
    """Return an instance from JSON values. Raises `TypeError` or `ValueError` for others."""
    if not isinstance(values, dict):
        raise TypeError(f"{kind.__name__} is no object")
    made = kind(**values)
    for name, annotation in kind.__annotations__.items():
        expected = {"int": int, "str": str}.get(annotation)
        if expected is not None:
            _expect(expected, getattr(made, name))
            if expected is int and getattr(made, name) < 0:
                raise ValueError(f"{name} is below 0")
    return made


def _expect(kind: type[Any], *values: Any) -> None:
    for value in values:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
