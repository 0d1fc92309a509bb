"""The keys of the installation, encrypted with a passphrase: scrypt and AES-GCM."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.conf import settings
from django.utils.encoding import force_str
from django.views.decorators.debug import sensitive_variables

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.manifest import SealedKeys
from agents.settings import SecretSettings

VARIABLE = "VEL_BACKUP_PASSPHRASE"
SHORTEST = 12
"""The fewest characters of a passphrase: a copy of the backup can be attacked at leisure."""
_MEMORY = 2**17
"""The cost of scrypt: one guess takes 128 MiB and about 0.4 s. It is part of the format."""
_MOST_CIPHERTEXT = 1024**2


@dataclass(frozen=True, slots=True)
class Keys:
    """Django's secret key with its fallbacks, and the keys of stored secrets (may be empty)."""

    secret_key: str
    fallbacks: tuple[str, ...] = ()
    stored_secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Keys(secret)"

    @property
    def signing(self) -> tuple[str, ...]:
        """The keys that may have signed manifests."""
        return (self.secret_key, *self.fallbacks)


def present_keys() -> Keys:
    """Return the keys of this installation."""
    return Keys(
        force_str(settings.SECRET_KEY),
        tuple(map(force_str, settings.SECRET_KEY_FALLBACKS)),
        tuple(SecretSettings.now().SECRET_KEYS),
    )


@sensitive_variables()
def seal_keys(keys: Keys, passphrase: str, backup: str) -> SealedKeys:
    """Encrypt the keys for the backup with this name.

    Raises:
        BackupRefused: The passphrase is too short.
    """
    if len(passphrase) < SHORTEST:
        raise BackupRefused(
            f"The passphrase has {len(passphrase)} characters. Use {SHORTEST} or more: it protects "
            "all stored secrets."
        )
    salt, nonce = os.urandom(16), os.urandom(12)
    plain = json.dumps([keys.secret_key, keys.fallbacks, keys.stored_secrets]).encode()
    sealed = AESGCM(_derived(passphrase, salt)).encrypt(nonce, plain, backup.encode())
    return SealedKeys(*(b64encode(part).decode() for part in (salt, nonce, sealed)))


@sensitive_variables()
def open_keys(sealed: SealedKeys, passphrase: str, backup: str) -> Keys:
    """Decrypt the keys of the backup with this name.

    Raises:
        BackupRefused: The passphrase is wrong, or the keys are damaged.
    """
    try:
        if len(sealed.ciphertext) > _MOST_CIPHERTEXT:
            raise ValueError
        salt, nonce, ciphertext = (
            b64decode(part, validate=True)
            for part in (sealed.salt, sealed.nonce, sealed.ciphertext)
        )
        plain = AESGCM(_derived(passphrase, salt)).decrypt(nonce, ciphertext, backup.encode())
        secret_key, fallbacks, stored = json.loads(plain)
    except (InvalidTag, ValueError):
        raise BackupRefused(
            "The passphrase is wrong, or the keys in the backup are damaged. Nothing was changed."
        ) from None
    return Keys(secret_key, tuple(fallbacks), tuple(stored))


def _derived(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=_MEMORY, r=8, p=1).derive(passphrase.encode())


@sensitive_variables()
def passphrase_from(file: Path | None) -> str | None:
    """Return the passphrase in a file, or that of VEL_BACKUP_PASSPHRASE, or None if it is not set.

    Raises:
        BackupRefused: The file cannot be read, or the variable is not UTF-8.
    """
    if file is not None:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BackupRefused(f"Cannot read the passphrase in {file}: {why}.") from None
        return text.rstrip("\r\n")
    given = os.environ.get(VARIABLE) or None
    if given is not None and any("\ud800" <= character <= "\udfff" for character in given):
        raise BackupRefused(f"{VARIABLE} is not UTF-8. Use --passphrase-file.")
    return given
