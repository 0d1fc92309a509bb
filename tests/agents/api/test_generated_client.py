"""A client that openapi-python-client makes of the document does what docs/api-client.md says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.api.schema_document import document_at
from tests.agents.api.chats import DONE, PLAN
from tests.support.runs import script_file
from tests.support.site import ROOT, Site, migrated_site
from tests.support.site_worker import working

CONFIG = ROOT / "docs" / "api-client.yml"

# As docs/api-client.md has it, in a process that knows nothing of Vel but the client.
USE = """
import sys, time
from vel_client import AuthenticatedClient
from vel_client.api.approvals import decide_approval, list_approvals
from vel_client.api.runs import create_run, get_run, list_events
from vel_client.models import DecisionBody, DecisionBodyDecision, Problem, RunBody
from vel_client.types import UNSET

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url + "/api/v1", token=token, prefix="Token")
body = RunBody(agent="asker", message="Plan something")
run = create_run.sync(client=client, body=body, idempotency_key="plan-1")
again = create_run.sync(client=client, body=body, idempotency_key="plan-1")
assert again.id == run.id, (again, run)

def wait_for(*statuses):
    until = time.monotonic() + 600
    while time.monotonic() < until:
        found = get_run.sync(run.id, client=client)
        if found.status.value in statuses:
            return found
        time.sleep(0.05)
    raise SystemExit(f"still {found.status.value}")

wait_for("waiting")
request = list_approvals.sync(client=client, run=run.id).results[0]
print(request.tool, request.input_)
decided = decide_approval.sync(
    request.id,
    client=client,
    body=DecisionBody(decision=DecisionBodyDecision.APPROVE, digest=request.digest),
)
assert decided.status.value == "decided", decided
ended = wait_for("completed", "failed")
print(ended.status.value, ended.output)
seen, after = [], 0
while True:
    page = list_events.sync(run.id, client=client, after=after, limit=3)
    if not page.results:
        break
    seen += [event.type_ for event in page.results]
    after = page.next_after
print(*seen)
refused = get_run.sync("none", client=client)
assert isinstance(refused, Problem) and refused.code == "not_found", refused
assert refused.errors is UNSET
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the generated package."""
    directory = tmp_path_factory.mktemp("client")
    document = directory / "openapi.json"
    document.write_text(json.dumps(document_at("/api/v1")))
    made = subprocess.run(
        [
            *(Path(sys.executable).with_name("openapi-python-client"), "generate"),
            *("--path", document, "--config", CONFIG, "--output-path", directory / "made"),
            "--fail-on-warning",
        ],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return directory / "made"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = migrated_site(tmp_path, os.environ.get("VEL_TEST_DATABASE_URL", ""))
    try:
        site.do("make_user", name="olga")
        turns = [{"text": "May I?", "tool_calls": [PLAN]}, {"text": DONE}]
        model = script_file(tmp_path, turns)
        site.do("make_agent", slug="asker", model=model, interrupt_on={"write_todos": True})
        site.start_server()
        with working(site):
            yield site
    finally:
        site.close()


def test_it_starts_a_run_reads_its_events_and_decides(client: Path, site: Site) -> None:
    token = site.do("make_token", user="olga", scopes=["read", "run", "approve"])
    used = subprocess.run(
        [sys.executable, "-c", USE, site.url, token],
        cwd=client,
        capture_output=True,
        text=True,
    )
    assert used.returncode == 0, used.stderr
    asked, ended, events = used.stdout.splitlines()
    assert asked.startswith("write_todos")
    assert ended == f"completed {DONE}"
    said = events.split()
    assert {"approval.requested", "approval.decided", "run.completed"} <= set(said)


def test_the_page_of_the_client_has_what_is_tested(client: Path) -> None:
    page = (ROOT / "docs" / "api-client.md").read_text()
    for line in USE.splitlines():
        if line.startswith(("from vel_client", "client =", "body =")):
            assert line in page, line
