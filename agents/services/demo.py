"""The demo: its agent, a run with the data in place, and the files that the run creates."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction

from agents.demo.task import (
    DATA_NAME,
    DATABASE_NAME,
    OUTPUTS,
    PLAIN,
    PUBLISHING,
    SYSTEM_PROMPT,
    TOOLBOX,
    TOOLBOX_PACKAGES,
    WITH_TOOLBOX,
    DemoTask,
    data_bytes,
    task_in,
)
from agents.kernel.options import known_options
from agents.kernel.relations import relations
from agents.models import POOL, Agent, Message, Run
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import Conflict
from agents.services.files.workspaces import (
    assign_sandbox_uid,
    open_workspace,
    workspace_backend,
    workspace_location,
)
from agents.services.runs.start import RunRequest, create_run
from agents.settings import DataSettings
from sandbox.backends import TreeBackend
from sandbox.errors import FileMissing, SandboxError
from sandbox.toolboxes.find import hold_toolbox
from sandbox.workspace import Workspace

DEMO_SLUG = "demo"
OUTPUT_BYTES = 10_000_000
"""The size limit of files that are read from a demo's workspace."""


def ensure_demo_agent() -> Agent:
    """Return the agent `demo`, and create it if necessary. Everybody may use it.

    It names no provider and no model, so the settings decide: without a key it uses the offline
    script. An existing one is not changed.
    """
    agent = Agent.objects.filter(slug=DEMO_SLUG).first()
    if agent is not None:
        return agent
    try:
        with transaction.atomic():
            related = {relation.name: relation.demo_rows() for relation in relations()}
            return save_agent(_new_agent(), related=related)
    except IntegrityError:  # another process created it at the same moment
        return Agent.objects.get(slug=DEMO_SLUG)


def _new_agent() -> Agent:
    definition = {
        "system_prompt": SYSTEM_PROMPT,
        "approval_rules": list(PUBLISHING),
        "max_turns": 60,
        "max_tokens": 2_000_000,
        "max_cost": 2,
        "max_seconds": 900,
    }
    return Agent(
        name="Demo: data analyst",
        slug=DEMO_SLUG,
        description="Analyses four years of weather and leaves a report and a chart.",
        everyone=True,
        **known_options(definition),
    )


def start_demo_run(owner: AbstractBaseUser, executor: str = POOL, source: str = "demo") -> Run:
    """Start a run of the demo's task in a new thread, with the data in its user_uploads.

    The file is written before the run can be claimed: run and thread commit afterwards. `executor`
    and `source` are those of the run. Raises `ServiceError`, and `SandboxError` if the workspace
    cannot be created; then there is no run.
    """
    agent = ensure_demo_agent()
    if agent.owner_id is not None:
        raise Conflict(
            f"The agent {DEMO_SLUG!r} belongs to a user: give it another slug in the admin, and "
            "the demo makes its own."
        )
    _give_rows(agent)
    task = _task_for(agent)
    request = RunRequest(agent=DEMO_SLUG, message=task.text, executor=executor, source=source)
    try:
        with transaction.atomic():
            run = create_run(request, owner=owner).run
            assign_sandbox_uid(run.thread)
            _uploads(_workspace(run)).write_bytes(f"/{DATA_NAME}", data_bytes())
            return run
    except IntegrityError:
        raise Conflict("Another thread was begun at the same moment: try again.") from None


def _give_rows(agent: Agent) -> None:
    """Add the demo's rows of features to its agent, and keep the agent's other rows."""
    missing = {}
    for relation in relations():
        there = list(relation.rows(agent))
        wanted = relation.demo_rows()
        if any(row not in there for row in wanted):
            missing[relation.name] = [*there, *(row for row in wanted if row not in there)]
    if missing:
        save_agent(agent, related=missing)


def demo_task(run: Run) -> DemoTask:
    """Return the demo task of `run`."""
    request = Message.objects.filter(run=run, role="user").order_by("turn").first()
    return (request and task_in(request.text)) or PLAIN


def _task_for(agent: Agent) -> DemoTask:
    """Return the task that fits the agent's toolbox and databases.

    The demo's own toolbox is set if this host has it, and removed if not: then the task uses the
    standard library. A toolbox that the operator chose is kept.
    """
    if agent.toolbox in ("", TOOLBOX):
        wanted = TOOLBOX if _has_packages(TOOLBOX) else ""
        if agent.toolbox != wanted:
            agent.toolbox = wanted
            save_agent(agent)
    task = WITH_TOOLBOX if agent.toolbox and _has_packages(agent.toolbox) else PLAIN
    return task if _has_database(agent) else task.without_database()


def _has_database(agent: Agent) -> bool:
    return any(DATABASE_NAME in relation.names(agent) for relation in relations())


def _has_packages(toolbox: str) -> bool:
    try:
        held = hold_toolbox(DataSettings.now().toolboxes, toolbox)
    except SandboxError:
        return False
    held.release()
    return set(TOOLBOX_PACKAGES) <= {name for name, _ in held.toolbox.distributions}


def read_demo_outputs(run: Run) -> dict[str, bytes]:
    """Return the files that the run had to create, by name, without missing or empty ones.

    Raises `SandboxError` if the workspace, or a file in it, cannot be read.
    """
    files = workspace_backend(_workspace(run))
    found: dict[str, bytes] = {}
    for name in demo_task(run).outputs:
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
    """Return a backend for the directory `user_uploads`, which agents can only read.

    Files that it writes belong to the workspace's account.
    """
    return TreeBackend(workspace.root / "user_uploads", uid=workspace.uid, gid=workspace.gid)
