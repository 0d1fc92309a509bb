"""`vel grants`: standing permissions for calls."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from agents.doors.cli.boot import with_database
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from rich.text import Text

    from agents.doors.cli.console import print_table
    from agents.doors.cli.find import by_id
    from agents.doors.cli.local_user import local_user
    from agents.models import ApprovalGrant
    from agents.selectors.visible import grants_for
    from agents.services.approvals.grants import good_grants, grant_state, revoke_grant


@click.group(short_help="List and revoke standing permissions.")
def grants() -> None:
    """Manage grants: calls that need no approval. GRANT is an ID or the start of an ID."""


@grants.command("list")
@with_database
@json_option
@click.option("--all", "ended_too", is_flag=True, help="Also those that have ended.")
def list_grants(as_json: bool, ended_too: bool) -> None:
    """Show your grants, grants for your runs, and grants that you can revoke, newest first."""
    found = grants_for(local_user())
    if not ended_too:
        found = good_grants(found)
    rows = list(found.select_related("agent", "owner", "created_by").order_by("-pk"))
    if as_json:
        for grant in rows:
            print(json.dumps(as_data(grant)))
        return
    if not rows:
        print("There are no grants.", file=sys.stderr)
        return
    print_table(
        ("GRANT", "AGENT", "STATE", "USES", "FOR", "BY", "CALLS"),
        (
            (
                grant.id,
                Text(one_line(grant.agent.slug, 30)),
                grant_state(grant).replace("_", " "),
                f"{grant.uses}/{grant.max_uses}",
                Text(whose(grant)),
                Text(_name(grant.created_by)),
                Text(calls(grant)),
            )
            for grant in rows
        ),
    )


@grants.command("revoke")
@click.argument("grant_id", metavar="GRANT")
@with_database
def revoke(grant_id: str) -> None:
    """Revoke a grant immediately."""
    user = local_user()
    grant = by_id(grants_for(user), grant_id, "grant")
    revoke_grant(grant.pk, by=user)
    print(f"{grant.id} is revoked: {one_line(grant.tool, 60)} asks again.")


def calls(grant: ApprovalGrant) -> str:
    """Return the calls that a grant covers, as one line."""
    parts = [f"{name} {value}" for name, value in grant.condition.items()]
    return one_line(f"{grant.tool}: {', '.join(parts) or 'every call'}", 120)


def whose(grant: ApprovalGrant) -> str:
    runs = "everybody" if grant.owner is None else _name(grant.owner)
    return f"{runs}, one thread" if grant.thread_id else runs


def _name(user: Any) -> str:
    return one_line(user.get_username(), 30) if user is not None else "-"


def as_data(grant: ApprovalGrant) -> dict[str, Any]:
    return {
        "id": grant.id,
        "agent": grant.agent.slug,
        "tool": grant.tool,
        "condition": grant.condition,
        "owner": grant.owner.get_username() if grant.owner else None,
        "thread": grant.thread_id,
        "state": grant_state(grant),
        "uses": grant.uses,
        "max_uses": grant.max_uses,
        "reason": grant.reason,
        "created_by": grant.created_by.get_username() if grant.created_by else None,
        "expires_at": grant.expires_at.isoformat(),
    }
