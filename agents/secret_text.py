"""Encrypted text: passwords and URLs that agents can use.

A row has a `SecretText`, which contains the ciphertext. Printing, logging and serializing it show
neither ciphertext nor plain text. Only `reveal()` returns the plain text.

Keys are `VEL["SECRET_KEYS"]`, or else Django's SECRET_KEY and its fallbacks. The first key
encrypts, all keys decrypt. Key derivation is the same for both settings, so SECRET_KEYS can contain
a former SECRET_KEY while some text is encrypted with it.
"""

from __future__ import annotations

import base64
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import models
from django.utils.encoding import force_str
from django.views.decorators.debug import sensitive_variables

from agents.kernel.lazy_modules import lazy_modules
from agents.settings import SecretSettings

with lazy_modules:
    # Takes 35 ms, which commands without secrets should avoid.
    from cryptography import fernet
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf import hkdf


if TYPE_CHECKING:
    pass

_LABEL = b"vel: stored secrets, version 1"
HIDDEN = "(secret)"


class SecretUnreadable(Exception):
    """No current key decrypts it, or nothing is stored. The message contains a solution."""


class SecretText:
    """An encrypted secret. Equality is identity, because each has its own nonce."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        """Store `token`, the ciphertext from `seal`; empty for no secret."""
        self._token = token

    @classmethod
    @sensitive_variables()
    def seal(cls, plain: str) -> SecretText:
        """Encrypt `plain` with the first key."""
        return cls(_fernet(_keys()).encrypt(plain.encode()).decode())

    @sensitive_variables()
    def reveal(self) -> str:
        """Return the plain text. Raises `SecretUnreadable`."""
        if not self._token:
            raise SecretUnreadable("Nothing is stored here: enter it again.")
        try:
            return _fernet(_keys()).decrypt(self._token.encode()).decode()
        except (fernet.InvalidToken, ValueError):
            raise SecretUnreadable(
                f"It cannot be decrypted: restore the key that encrypted it to {_setting()}, "
                "or enter it again."
            ) from None

    @sensitive_variables()
    def sealed_anew(self) -> SecretText:
        """Encrypt the secret again with the first key. Raises `SecretUnreadable`."""
        return SecretText.seal(self.reveal())

    def same_as(self, other: SecretText) -> bool:
        """Return whether both have the same plain text. False if either cannot be decrypted."""
        try:
            return hmac.compare_digest(self.reveal().encode(), other.reveal().encode())
        except SecretUnreadable:
            return False

    def __bool__(self) -> bool:
        return bool(self._token)

    def __repr__(self) -> str:
        return HIDDEN if self._token else "(no secret)"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stored secret is not pickled: read its row where it is needed.")

    def __copy__(self) -> SecretText:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SecretText:
        return self


if TYPE_CHECKING:
    _TextField = models.TextField[SecretText, SecretText]
else:
    _TextField = models.TextField


class SecretTextField(_TextField):
    """A column of ciphertext, with `SecretText` in Python.

    Plain text raises an error, so that it is not stored unencrypted by mistake. Serializers
    (`dumpdata`) write an empty text: dumps contain no secrets, and users enter them again after
    loading. Backups of the database contain the ciphertext.
    """

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else SecretText(value)

    def to_python(self, value: Any) -> Any:
        if value in (None, ""):
            return SecretText("")
        if isinstance(value, SecretText):
            return value
        raise ValidationError("A secret is not loaded from text.")

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, SecretText):
            raise TypeError(f"{self.name} takes a SecretText and got a {type(value).__name__}.")
        return value._token

    def get_lookup(self, lookup_name: str) -> Any:
        """Allow only `isnull`, so that filters of lists cannot reveal parts of the ciphertext."""
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None

    def value_to_string(self, obj: models.Model) -> str:
        return ""


def _setting() -> str:
    return "VEL_SECRET_KEYS" if SecretSettings.now().SECRET_KEYS else "VEL_SECRET_KEY"


def _keys() -> tuple[str, ...]:
    return SecretSettings.now().SECRET_KEYS or tuple(
        map(force_str, [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS])
    )


@lru_cache(maxsize=4)
@sensitive_variables()
def _fernet(keys: tuple[str, ...]) -> fernet.MultiFernet:
    if not all(keys):
        raise ImproperlyConfigured(f"{_setting()} has an empty key.")

    def derived(key: str) -> bytes:
        made = hkdf.HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_LABEL).derive(
            key.encode()
        )
        return base64.urlsafe_b64encode(made)

    return fernet.MultiFernet([fernet.Fernet(derived(key)) for key in keys])
