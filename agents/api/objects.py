"""The objects of the admin that Vel's own endpoints cover."""

from __future__ import annotations

from agents.api import machines, user_threads, user_tokens
from agents.doors.rest.managed.coverage import RestObject
from agents.models import Agent, AuditEntry, Run

_SHARED = "its users; others: `agents.view_agent`"
_RUNS = "its owner, or `agents.view_all_runs`"

OBJECTS = [
    *machines.OBJECTS,
    *user_threads.OBJECTS,
    *user_tokens.OBJECTS,
    RestObject(
        model=Agent,
        path="agents",
        list=("list_agents", _SHARED),
        read=("get_agent", _SHARED),
        create=("create_agent", "`agents.add_agent`"),
        change=(
            "change_agent",
            "its owner, or `agents.change_agent`; guarded fields need their permissions",
        ),
        delete=("archive_agent", "as to change it"),
        further={
            "get_agent_definition": "its owner, or `agents.view_agent`",
            "list_agent_versions": "its owner, or `agents.view_agent`",
            "restore_agent_version": "as to change it",
            "erase_agent": "`agents.delete_agent` and `agents.erase_thread`, with the scope admin",
        },
        actions={
            "duplicate_selected": "create_agent",
            "activate_selected": "change_agent",
            "deactivate_selected": "archive_agent",
            "export_selected": "export_agent",
            "erase_conversations_selected": "erase_agent",
        },
    ),
    RestObject(
        model=AuditEntry,
        path="audit",
        list=("list_audit", "`agents.view_auditentry`"),
    ),
    RestObject(
        model=Run,
        path="runs",
        list=("list_runs", _RUNS),
        read=("get_run", _RUNS),
        create=("create_run", "people who may use the agent"),
        further={"cancel_run": "as its page", "resume_run": "as its page"},
        actions={"cancel_selected": "cancel_run", "resume_selected": "resume_run"},
        scope="run",
    ),
    RestObject(
        model=None,
        path="toolboxes",
        list=("list_toolboxes", "users of its agents; all: `agents.configure_sandbox`"),
        read=("get_toolbox", "`agents.configure_sandbox`"),
        create=("create_toolbox", "staff with `agents.configure_sandbox`"),
        change=("create_toolbox", "staff with `agents.configure_sandbox`"),
        delete=("delete_toolbox", "staff with `agents.configure_sandbox`"),
        scope="admin",
    ),
    RestObject(
        model=None,
        path="threads",
        list=("list_threads", "its owner"),
        read=("get_thread", "its owner"),
        change=("rename_thread", "its owner"),
        delete=("erase_thread", "its owner"),
    ),
]
