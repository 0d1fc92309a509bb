"""A feature can be removed: without its folder and its line in the settings, Vel works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.features import FEATURES
from tests.sandbox.places import reachable_directory

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "vel",
    "velproject",
    "agents",
    "skills_app",
    "memory",
    "text_scanner",
    "sandbox",
    "templates",
)
LIST = Path("agents/features/__init__.py")
USE = """
import os
import sys
from importlib.util import find_spec
from pathlib import Path

# An editable installation would find the original, too.
sys.path[:] = [path for path in sys.path if not Path(path, "manage.py").is_file()]
sys.path.insert(0, os.getcwd())
assert not any(map(find_spec, os.environ["REMOVED"].split()))
from django.core.management import call_command
from velproject.cli.main import main

import django
django.setup()
call_command("check", fail_level="ERROR")
call_command("makemigrations", check=True, dry_run=True)
call_command("migrate", verbosity=0)
sys.argv = ["vel", "--provider", "scripted", "--model", "demo", "--no-sandbox", "Say hello"]
main()
"""


def path_of(name: str) -> str:
    return next(path for path in FEATURES if path.rpartition(".")[2] == name)


def copy_without(place: Path, names: Sequence[str]) -> Path:
    """Copy the project to `place`, and remove these features from the copy."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, place / name)  # keeps times, so that .pyc files stay valid
    shutil.copy2(ROOT / "manage.py", place)
    text = (place / LIST).read_text()
    for name in names:
        path = path_of(name)
        line = f'    "{path}",\n'
        assert line in text
        text = text.replace(line, "")
        shutil.rmtree(place / path.replace(".", "/"))
    (place / LIST).write_text(text)
    return place


@pytest.mark.parametrize(
    "names",
    [
        ["slack"],
        ["databases"],
        ["forks"],
        ["google_workspace"],
        ["mcp_server"],
        ["notifications"],
        ["slack", "google_workspace", "credentials"],
        ["memory"],
        ["skills_app"],
        ["inbound_webhooks"],
        ["schedules"],
        ["inbound_webhooks", "schedules"],
        ["guardrails", "structured_output"],
        ["compaction", "fallbacks"],
    ],
    ids=lambda names: names[-1],
)
def test_vel_works_without_a_feature(tmp_path: Path, names: Sequence[str]) -> None:
    place = copy_without(tmp_path / "project", names)
    with reachable_directory() as data:
        done = use(place, data, names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "No changes detected" in done.stdout


def use(place: Path, data: Path, names: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Check the project at `place`, migrate an empty database, and complete a run."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {
        **kept,
        "PYTHONPATH": str(place),
        "DJANGO_SETTINGS_MODULE": "velproject.settings",
        "VEL_DATA_DIR": str(data),
        "REMOVED": " ".join(map(path_of, names)),
    }
    return subprocess.run(
        [sys.executable, "-c", USE],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
