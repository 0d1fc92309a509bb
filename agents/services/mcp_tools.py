"""What a server says of its tools, and a person's yes to it."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import PermissionsMixin
from django.db import transaction
from django.utils import timezone

from agents.mcp.definitions import Listing
from agents.models import Effect, McpServer
from agents.selectors.visible import Person
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound

ACCEPT = "agents.accept_mcp_tools"
EFFECTS = (str(Effect.READ), str(Effect.EXTERNAL))


def may_accept(user: Person) -> bool:
    """Whether `user` may say that agents are told what a server says of its tools."""
    return isinstance(user, PermissionsMixin) and user.has_perm(ACCEPT)


@transaction.atomic
def store_listing(server_id: str, listing: Listing, *, by: Person) -> McpServer:
    """Keep what a server said when `by` had it asked, to be accepted."""
    row = _locked(server_id)
    row.found = [tool.as_json() for tool in listing.tools]
    row.found_digest = listing.digest
    row.found_refused = [list(each) for each in listing.refused]
    row.checked_at, row.problem = timezone.now(), ""
    row.save()
    changes = {"tools": (None, [tool.name for tool in listing.tools])}
    record("mcp_server.fetched", row, name=row.slug, by=by, changes=changes)
    return row


@transaction.atomic
def store_problem(server_id: str, problem: str) -> None:
    """Keep why a server could not be asked, for its page."""
    row = _locked(server_id)
    row.checked_at = timezone.now()
    row.problem = problem[:2000].replace("\x00", "\N{REPLACEMENT CHARACTER}")
    row.save(update_fields=["checked_at", "problem", "updated_at"])


@transaction.atomic
def note_listing(server_id: str, listing: Listing) -> None:
    """Keep what a server says in a run, if it is not what a person has looked at.

    Nothing is written for what is known.
    """
    row = McpServer.objects.select_for_update().filter(pk=server_id).first()
    if row is None or row.found_digest == listing.digest:
        return
    row.found = [tool.as_json() for tool in listing.tools]
    row.found_digest = listing.digest
    row.found_refused = [list(each) for each in listing.refused]
    row.checked_at, row.problem = timezone.now(), ""
    row.save()


@transaction.atomic
def accept_tools(
    server_id: str, *, digest: str, effects: Mapping[str, str], by: Person
) -> McpServer:
    """Pin these tools of what was found: from now on agents have them and no others of it.

    `digest` is that of the list which `by` was shown; `effects` has `read` or `external` for each
    tool that is taken. Raises `NotAllowed`, `InvalidRequest`, and `Conflict` (code `stale`) if the
    server has said something else since.
    """
    if not may_accept(by):
        raise NotAllowed(f"Accepting the tools of MCP servers needs the permission {ACCEPT}.")
    row = _locked(server_id)
    if row.found is None or row.found_digest != digest:
        raise Conflict("The server's list is not the one that you were shown.", code="stale")
    found = {tool["name"]: tool for tool in row.found}
    for name, effect in effects.items():
        if name not in found:
            raise InvalidRequest(f"tools: the list has no {name[:100]!r}.")
        if effect not in EFFECTS:
            raise InvalidRequest("tools: an effect is read or external.")
    before = {tool["name"]: [tool["effect"], tool["digest"][:12]] for tool in row.tools}
    row.tools = [
        {**tool, "effect": effects[name]} for name, tool in found.items() if name in effects
    ]
    row.found = None
    row.pinned_at, row.pinned_by_id = timezone.now(), by.pk
    row.save()
    after = {tool["name"]: [tool["effect"], tool["digest"][:12]] for tool in row.tools}
    record("mcp_server.accepted", row, name=row.slug, by=by, changes={"tools": (before, after)})
    return row


def _locked(server_id: str) -> McpServer:
    row = McpServer.objects.select_for_update().filter(pk=server_id).first()
    if row is None:
        raise NotFound("There is no such MCP server.")
    return row
