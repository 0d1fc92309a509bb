"""Use each part of the example feature in its own process; print the results as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django

django.setup()

from django.apps import apps  # noqa: E402  # after the set-up
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from agents.consumers.run import parse_frame  # noqa: E402
from agents.middleware.registry import known_tool_names  # noqa: E402
from agents.models import Agent, ToolCall  # noqa: E402
from agents.services.agent_definitions.files import carry_out_import, export_agent  # noqa: E402
from tests.support.runs import drive_to_end, script_file, start_run  # noqa: E402

LOOK_UPS = [{"name": "look_up_word", "input": {"word": word}} for word in ("spam", "eggs")]
SCRIPT = [{"tool_calls": LOOK_UPS}, {"text": "ok"}]


def main() -> None:
    call_command("check", fail_level="WARNING")
    call_command("migrate", verbosity=0)
    term = apps.get_model("vel_glossary", "Term")
    term.objects.create(word="spam", meaning="Meat in a tin, and letters that nobody wants.")
    root = User.objects.create_superuser("root", password="secret-for-a-test")
    script = script_file(Path(sys.argv[1]), SCRIPT)
    file = (
        f"name: Ada\nslug: ada\nprovider: scripted\nmodel: {script}\nsandbox: false\n"
        "tools: [ls, look_up_word]\nglossary: true\nglossaryLength: 12\n"
    )
    agent, _ = carry_out_import(file, by=root, known_tools=known_tool_names())
    run = drive_to_end(start_run(root, "What is spam?", agent="ada"))
    client = Client(headers={"host": "localhost"})
    client.force_login(root)
    frame = parse_frame('{"type": "define", "word": "ham", "meaning": "Meat, and wanted mail."}')
    frame.carry_out(run, root)
    print(json.dumps(_found(client, root, Agent.objects.get(pk=agent.pk), run)))


def _found(client: Client, root: User, agent: Agent, run: Any) -> dict[str, Any]:
    form = client.get(f"/admin/agents/agent/{agent.pk}/change/").content.decode()
    return {
        "status": run.status,
        "result": ToolCall.objects.get(run=run, position=0).result,
        "missed": [row.data for row in run.events.filter(type="glossary.word_missed")],
        "prompt": str(run.thread.epochs.get().head),
        "file": export_agent(agent, by=root),
        "options": client.get(f"/api/v1/agents/{agent.pk}").json()["options"],
        "endpoint": client.get("/api/v1/glossary").json(),
        "operation": "list_terms" in client.get("/api/v1/schema").content.decode(),
        "page": client.get("/glossary/").content.decode(),
        "admin": client.get("/admin/vel_glossary/term/").status_code,
        "form": 'name="glossary_length" value="12"' in form,
    }


main()
