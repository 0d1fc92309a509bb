"""One server and one worker for all tests here, as with `vel up`, and agents."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.agents.features.mcp_server.serving import FORM, HIDDEN, LONG, PLAN, Served
from tests.support.runs import script_file
from tests.support.site import migrated_site
from tests.support.site_worker import working


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Olga and Peter may use all agents except `private`, which is Peter's, and `unoffered`."""
    directory = tmp_path_factory.mktemp("mcp")
    site = migrated_site(directory, os.environ.get("VEL_TEST_DATABASE_URL", ""))

    def script(name: str, *turns: dict) -> str:
        return script_file(directory, list(turns), f"{name}.json")

    asks = script("asks", {"text": "May I?", "tool_calls": [PLAN]}, {"text": "Done."})
    fits = script("fits", {"text": json.dumps({"total": 42})})
    try:
        for name in ("olga", "peter"):
            site.do("make_user", name=name)
        for slug, model, fields in (
            ("echo", "echo", {"description": "Says it back.\u202e", "system_prompt": "A secret."}),
            ("asks", asks, {"interrupt_on": {"write_todos": True}}),
            ("slow", script("slow", {"text": "At last.", "delay": 60}), {}),
            ("counts", fits, {"output_schema": FORM}),
            ("hides", script("hides", {"text": f"Fine.{HIDDEN}"}), {}),
            ("greets", "echo", {"system_prompt": "For {{context.customer}}."}),
            (LONG, "echo", {}),
        ):
            site.do("make_agent", slug=slug, model=model, mcp_tool=True, **fields)
        site.do("make_agent", slug="unoffered", model="echo")
        site.environment["VEL_TRUSTED_ORIGINS"] = "https://*.trusted.example"
        site.start_server()
        with working(site):
            yield Served(site)
    finally:
        site.close()
