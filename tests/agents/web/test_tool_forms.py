"""The forms of tools come from features, and the page of a run has all of them."""

from __future__ import annotations

import gzip
import html
import json
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from agents.doors.web.tool_forms import forms_for_page, tool_forms
from agents.middleware.registry import known_tool_names
from tests.agents.web.conftest import SignIn

pytestmark = pytest.mark.django_db

MOST_BYTES = 150_000
"""Compressed JavaScript that the page of a run can load."""
IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")
SCRIPT = re.compile(r'<script type="module" src="/static/([^"]+)"')


def test_each_form_is_that_of_one_known_tool() -> None:
    names = [form.tool for form in tool_forms()]
    assert len(names) == len(set(names))
    assert set(names) - known_tool_names() <= {"execute_in_sandbox"}


def test_the_page_has_the_forms_and_scripts_of_all_features(run: str, sign_in: SignIn) -> None:
    page = sign_in("olga").get(f"/runs/{run}/").content.decode()
    found = re.search(r'data-tool-forms="([^"]+)"', page)
    assert found is not None
    forms = json.loads(html.unescape(found[1]))
    assert forms == json.loads(json.dumps(forms_for_page(tool_forms())))
    assert forms["execute"]["form"] == "terminal"
    assert forms["write_todos"]["form"] == "vel_planning"
    scripts = SCRIPT.findall(page)
    assert scripts.index("vel_planning/todos_form.js") < scripts.index("agents/web/run.js")


def test_the_scripts_of_the_page_are_small(run: str, sign_in: SignIn) -> None:
    page = sign_in("olga").get(f"/runs/{run}/").content.decode()
    paths = [Path(str(finders.find(name))) for name in SCRIPT.findall(page)]
    loaded: set[str] = set()
    size = 0
    while paths:
        path = paths.pop()
        name = f"{path.parent.name}/{path.name}"
        if name in loaded:
            continue
        loaded.add(name)
        content = path.read_text()
        size += len(gzip.compress(content.encode()))
        for imported in IMPORT.findall(content):
            target = (path.parent / imported).resolve()
            # Imports of other apps are relative to the static root.
            root = finders.find(imported.removeprefix("../"))
            paths.append(target if target.exists() else Path(str(root)))
    assert "vendor/highlight.js" in loaded
    assert "web/transcript.js" in loaded
    assert size < MOST_BYTES, f"{size:,} bytes"
