"""A third-party feature is one package: it is installed with pip and named in VEL_APPS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.places import reachable_directory
from tests.support.wheels import NO_INDEX, make_wheel

ROOT = Path(__file__).parents[3]
SOURCE = Path(__file__).parent / "glossary"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the feature's parts in a project with the installed package."""
    place = tmp_path_factory.mktemp("outside")
    files = {
        f"vel_glossary/{path.relative_to(SOURCE)}": path.read_text()
        for path in SOURCE.rglob("*")
        if path.suffix in (".py", ".html")
    }
    wheel = make_wheel(place, "vel_glossary", files)
    installed = place / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", installed, wheel],
        env={**os.environ, **NO_INDEX},
        check=True,
    )
    with reachable_directory() as data:
        environment = {
            **os.environ,
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "velproject.settings",
            "PYTHONPATH": f"{ROOT}:{installed}",
            "VEL_APPS": "vel_glossary",
            "VEL_DATA_DIR": str(data),
            "VEL_SCRIPTS_DIR": "/",
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.agents.features.use_glossary", str(place)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
def test_its_tool_runs_with_the_options_of_the_agent(found: dict[str, Any]) -> None:
    assert found["status"] == "completed"
    assert json.loads(found["result"]) == "Meat in a ti"


def test_its_hook_adds_an_event_to_a_failed_call(found: dict[str, Any]) -> None:
    assert [json.loads(data)["word"] for data in found["missed"]] == ["eggs"]


def test_its_segment_is_in_the_prompt(found: dict[str, Any]) -> None:
    assert "## Glossary" in found["prompt"]


def test_its_options_are_in_the_file_the_form_and_the_api(found: dict[str, Any]) -> None:
    assert found["file"].endswith("glossary: true\nglossary_length: 12\n")
    assert found["options"] == {"glossary": True, "glossary_length": 12}
    assert found["form"]


def test_its_endpoint_is_part_of_the_api(found: dict[str, Any]) -> None:
    assert [term["word"] for term in found["endpoint"]] == ["ham", "spam"]
    assert found["operation"]


def test_a_client_can_send_its_frames(found: dict[str, Any]) -> None:
    assert "<dt>ham</dt>" in found["page"]


def test_its_page_is_in_the_navigation(found: dict[str, Any]) -> None:
    assert "<dt>spam</dt>" in found["page"]
    assert '<a href="/glossary/" data-key="y" aria-current="page">Glossary</a>' in found["page"]


def test_its_rows_are_in_the_admin(found: dict[str, Any]) -> None:
    assert found["admin"] == 200
