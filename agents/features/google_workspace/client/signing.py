"""RSA keys of service accounts. Imported late: cryptography takes 0.05 s, and few agents use it."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.views.decorators.debug import sensitive_variables

SMALLEST = 2048
"""Smallest allowed size of a key in bits."""


@sensitive_variables()
def is_private_key(pem: str) -> bool:
    """Return whether `pem` is an RSA key of at least `SMALLEST` bits."""
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        return False
    return isinstance(key, RSAPrivateKey) and key.key_size >= SMALLEST


@sensitive_variables()
def signature(pem: str, data: bytes) -> bytes:
    """Sign `data` with RS256."""
    key = load_pem_private_key(pem.encode(), None)
    assert isinstance(key, RSAPrivateKey)
    return key.sign(data, PKCS1v15(), SHA256())
