"""The compose file: what its containers may do, and what Vel reads from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.kernel.settings import installed, settings_of
from tests.docs_tools.blocks import ROOT
from velproject.cli.commands.machines.up import up
from velproject.cli.commands.machines.worker import worker
from velproject.server_settings import ServerSettings

PATH = ROOT / "deploy/compose.yaml"
TEXT = PATH.read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
VEL = ["web", "worker-1", "worker-2"]


def test_there_are_two_workers_postgresql_and_redis() -> None:
    assert set(SERVICES) == {*VEL, "database", "redis"}
    assert SERVICES["redis"]["profiles"] == ["redis"]


@pytest.mark.parametrize("name", VEL)
def test_the_containers_of_vel_have_no_rights_that_they_do_not_need(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert not {"cap_add", "privileged", "user", "pid", "network_mode", "devices"} & set(service)
    options = service["security_opt"]
    assert "no-new-privileges:true" in options
    assert "seccomp=${VEL_SECCOMP:-./seccomp.json}" in options
    assert (PATH.parent / "seccomp.json").is_file()
    assert service["volumes"] == ["data:/var/lib/vel"]


def test_only_this_machine_reaches_the_pages_and_only_vel_the_database() -> None:
    assert SERVICES["web"]["ports"] == ["127.0.0.1:${VEL_PORT:-8000}:8000"]
    public = SERVICES["web"]["environment"]["VEL_PUBLIC_URL"]
    assert public == "${VEL_PUBLIC_URL:-http://127.0.0.1:${VEL_PORT:-8000}}"
    for name in {*SERVICES} - {"web"}:
        assert "ports" not in SERVICES[name]
    for name in ("database", "redis"):
        assert SERVICES[name]["networks"] == ["inside"]
    assert yaml.safe_load(TEXT)["networks"]["inside"] == {"internal": True}


def test_each_container_is_a_host_with_its_own_permanent_name() -> None:
    names = [SERVICES[name]["environment"]["VEL_HOST"] for name in VEL]
    assert names == VEL


@pytest.mark.parametrize("name", VEL)
def test_vel_knows_each_variable(name: str) -> None:
    known = {
        variable
        for declared_in in (*installed(), ServerSettings)
        for setting in settings_of(declared_in)
        for variable in setting.variables
    }
    assert set(SERVICES[name]["environment"]) <= known


def test_vel_accepts_the_commands() -> None:
    program, *options = SERVICES["web"]["command"]
    assert program == "up"
    assert up.make_context(program, options).params["no_workers"] is True
    for name in ("worker-1", "worker-2"):
        program, *options = SERVICES[name]["command"]
        assert program == "worker"
        worker.make_context(program, options)


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "VEL_SECRET_KEY"])
def test_a_secret_has_no_default(name: str) -> None:
    assert re.findall(rf"\$\{{{name}(:.)", TEXT)
    assert set(re.findall(rf"\$\{{{name}(:.)", TEXT)) == {":?"}


def test_the_file_with_the_secrets_is_not_in_git_or_in_the_image() -> None:
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().split()
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    assert "*" in ignored
    assert "!deploy" not in ignored
    assert "**/.env" in ignored


def test_the_build_uses_the_files_of_this_repository() -> None:
    build = SERVICES["web"]["build"]
    context = (PATH.parent / build["context"]).resolve()
    assert context == Path(ROOT).resolve()
    assert (context / build["dockerfile"]).is_file()
