"""The demo: its agent, a run with the data in place, and what the run has made."""

from __future__ import annotations

from decimal import Decimal

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction

from agents.demo.resources import data_bytes
from agents.demo.task import DATA_NAME, OUTPUT_NAMES, OUTPUTS, SYSTEM_PROMPT, TASK
from agents.models import POOL, Agent, Run
from agents.services.agents import save_agent
from agents.services.errors import Conflict
from agents.services.runs import RunRequest, create_run
from agents.services.workspaces import (
    assign_sandbox_uid,
    open_workspace,
    workspace_backend,
    workspace_location,
)
from sandbox.backends import TreeBackend
from sandbox.errors import FileMissing
from sandbox.workspace import Workspace

DEMO_SLUG = "demo"
OUTPUT_BYTES = 10_000_000
"""The largest file that is taken out of a demo's workspace."""


def ensure_demo_agent() -> Agent:
    """The agent `demo`, made if it is not there. Everybody may use it.

    It names no provider and no model: the settings decide, so that it is the offline script until
    there is a key. One that is there is left as its owner or the operator has it.
    """
    agent = Agent.objects.filter(slug=DEMO_SLUG).first()
    if agent is not None:
        return agent
    try:
        with transaction.atomic():
            return save_agent(_new_agent())
    except IntegrityError:  # another process made it at the same moment
        return Agent.objects.get(slug=DEMO_SLUG)


def _new_agent() -> Agent:
    return Agent(
        name="Demo: data analyst",
        slug=DEMO_SLUG,
        description="Analyses four years of weather and leaves a report and a chart.",
        system_prompt=SYSTEM_PROMPT,
        everyone=True,
        max_turns=60,
        max_tokens=2_000_000,
        max_cost=Decimal(2),
        max_seconds=900,
    )


def start_demo_run(owner: AbstractBaseUser, executor: str = POOL, source: str = "demo") -> Run:
    """A run of the demo's task in a new thread, with the data in its user_uploads.

    The file is written before the run can be claimed: run and thread commit afterwards. Raises
    `ServiceError`, and `SandboxError` where the workspace cannot be made; then there is no run.
    """
    if ensure_demo_agent().owner_id is not None:
        raise Conflict(
            f"The agent {DEMO_SLUG!r} belongs to a user: give it another slug in the admin, and "
            "the demo makes its own."
        )
    request = RunRequest(agent=DEMO_SLUG, message=TASK, executor=executor, source=source)
    try:
        with transaction.atomic():
            run = create_run(request, owner=owner).run
            assign_sandbox_uid(run.thread)
            _uploads(_workspace(run)).write_bytes(f"/{DATA_NAME}", data_bytes())
            return run
    except IntegrityError:
        raise Conflict("Another thread was begun at the same moment: try again.") from None


def read_demo_outputs(run: Run) -> dict[str, bytes]:
    """The files that the run was to make, by name; those that are missing or empty are left out.

    Raises `SandboxError` for a workspace, or a file in it, that cannot be read.
    """
    files = workspace_backend(_workspace(run))
    found: dict[str, bytes] = {}
    for name in OUTPUT_NAMES:
        try:
            data = files.read_bytes(f"{OUTPUTS}/{name}", OUTPUT_BYTES)
        except FileMissing:
            continue
        if data:
            found[name] = data
    return found


def _workspace(run: Run) -> Workspace:
    return open_workspace(workspace_location(run.thread))


def _uploads(workspace: Workspace) -> TreeBackend:
    """The directory that agents only read, with the workspace's account as owner."""
    return TreeBackend(workspace.root / "user_uploads", uid=workspace.uid, gid=workspace.gid)
