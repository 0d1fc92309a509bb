"""No secret of any place reaches the support bundle."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agents.doors.cli.errors import CliError
from agents.features.mcp_client.models import McpServer
from agents.features.operations.service import support_bundle
from agents.features.operations.service.support_bundle import write_bundle
from agents.kernel.findings import Finding, Level
from agents.secret_text import SecretText
from tests.support.mcp_servers import define
from tests.support.runs import make_user

pytestmark = pytest.mark.django_db

PLANTED = {
    "environment": "plain-words-of-the-environment",
    "header": "plain-words-of-a-header",
    "url": "p@ss/of a url",
    "django": 'django-key-with-"quotes"-and-ü',
    "setting": "token-of-the-metrics-0123456789",
    "database": "password-of-the-database-server",
    "service": "password-of-the-service",
    "row": "secret-of-an-mcp-server",
}
LOOKS_LIKE_A_KEY = "sk-ant-" + "a1" * 20


def texts(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        found = {}
        for entry in archive:
            file = archive.extractfile(entry)
            assert file is not None
            found[entry.name] = file.read().decode()
        return found


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    service = tmp_path / "vel.env"
    service.write_text(f'# settings\nDATABASE_URL="postgresql://vel:{PLANTED["service"]}@db/vel"\n')
    monkeypatch.setattr(support_bundle, "ENVIRONMENT_FILE", str(service))
    monkeypatch.setenv("ANTHROPIC_API_KEY", PLANTED["environment"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-key={PLANTED['header']},b=c")
    monkeypatch.setenv("VEL_STORAGE_URL", "https://u:p%40ss%2Fof%20a%20url@example.org/")
    settings.SECRET_KEY_FALLBACKS = [PLANTED["django"]]
    settings.VEL = {**settings.VEL, "METRICS_TOKEN": PLANTED["setting"]}
    monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", PLANTED["database"])
    define(make_user(is_superuser=True))
    McpServer.objects.update(secrets=SecretText.seal(json.dumps({"env": {"K": PLANTED["row"]}})))


@pytest.mark.usefixtures("planted")
def test_planted_secrets_are_masked_in_findings_and_in_the_log(tmp_path: Path) -> None:
    everything = [
        *PLANTED.values(),
        LOOKS_LIKE_A_KEY,
        "https://u:p%40ss%2Fof%20a%20url@example.org",
    ]
    log = tmp_path / "vel.log"
    lines = [f"harmless {one} end" for one in everything]
    lines += [json.dumps({"message": one}) for one in everything]
    log.write_text("\n".join(lines))
    findings = [Finding("x", Level.NOTE, one, one) for one in everything]
    write_bundle(tmp_path / "b.tar.gz", findings, log)
    found = texts(tmp_path / "b.tar.gz")
    assert {name.partition("/")[2] for name in found} == {
        "findings.json", "versions.json", "settings.json", "counts.json", "log.txt",
    }  # fmt: skip
    assert found["vel-support/log.txt"].count("harmless") == len(everything)
    together = "".join(found.values())
    for one in (*everything, "p%40ss%2Fof", json.dumps(PLANTED["django"])[1:-1]):
        assert one not in together


@pytest.mark.usefixtures("planted")
def test_settings_show_only_numbers_and_switches(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b.tar.gz", [])
    shown = json.loads(texts(tmp_path / "b.tar.gz")["vel-support/settings.json"])
    assert "ANTHROPIC_API_KEY" in shown["variables"]
    assert shown["settings"]["METRICS_TOKEN"] == "(set)"
    for value in shown["settings"].values():
        assert isinstance(value, bool | int | float) or value in ("(set)", "(not set)")


def test_only_this_account_can_read_it_and_no_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    write_bundle(path, [])
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    with pytest.raises(CliError, match="exists"):
        write_bundle(path, [])
    assert path.read_bytes() == before
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CliError):
        write_bundle(link, [])
    assert not (tmp_path / "elsewhere").exists()


def test_a_log_that_cannot_be_read_leaves_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="Cannot read"):
        write_bundle(tmp_path / "b.tar.gz", [], tmp_path / "missing")
    assert not (tmp_path / "b.tar.gz").exists()


def bundled_log(tmp_path: Path) -> str:
    (tmp_path / "vel.log").write_text("a line of the log")
    write_bundle(tmp_path / "b.tar.gz", [], tmp_path / "vel.log")
    return texts(tmp_path / "b.tar.gz")["vel-support/log.txt"]


@pytest.mark.usefixtures("planted")
def test_the_log_is_left_out_if_a_stored_secret_cannot_be_read(
    tmp_path: Path, settings: Any
) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-key" * 5, []
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ()}
    log = bundled_log(tmp_path)
    assert "a line of the log" not in log
    assert "secrets of the database" in log


def test_the_log_is_left_out_if_the_settings_of_the_service_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support_bundle, "ENVIRONMENT_FILE", str(tmp_path))  # not a file
    log = bundled_log(tmp_path)
    assert "a line of the log" not in log
    assert str(tmp_path) in log
