"""The TLS context that all clients of the model APIs share is always up to date."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import certifi
import pytest

from agents.providers.transport import tls_context

ALL = Path(certifi.where()).read_text()
BEGIN = "-----BEGIN CERTIFICATE-----"
CERTIFICATES = [BEGIN + rest for rest in ALL.split(BEGIN)[1:]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a file with one certificate, named by SSL_CERT_FILE."""
    path = tmp_path / "certificates.pem"
    path.write_text(CERTIFICATES[0])
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def trusted(context: ssl.SSLContext) -> list[str]:
    return [str(found["serialNumber"]) for found in context.get_ca_certs()]


def test_clients_share_one_context(file: Path) -> None:
    context = tls_context()
    assert tls_context() is context
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(trusted(context)) == 1


def test_a_file_that_is_written_again_is_read_again(file: Path) -> None:
    before = trusted(tls_context())
    kept = file.stat()
    file.write_text(CERTIFICATES[1])
    os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    after = trusted(tls_context())
    assert len(after) == 1
    assert after != before


def test_a_file_that_is_replaced_is_read_again(file: Path) -> None:
    before = trusted(tls_context())
    fresh = file.with_suffix(".new")
    fresh.write_text(CERTIFICATES[1])
    fresh.replace(file)
    assert trusted(tls_context()) != before


def test_another_file_is_read_immediately(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trusted(tls_context())
    other = file.with_name("other.pem")
    other.write_text("".join(CERTIFICATES[:3]))
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    assert len(trusted(tls_context())) == 3
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert trusted(tls_context()) == before


def test_a_directory_is_read_for_each_context(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL does not read a directory again, so this context is not shared."""
    shared = tls_context()
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(file.parent))
    assert tls_context() is not shared
    assert tls_context() is not tls_context()


def test_a_missing_file_is_an_error(file: Path) -> None:
    tls_context()
    file.unlink()
    with pytest.raises(FileNotFoundError):
        tls_context()
