"""Change MCP servers and accept their tools. Secrets are encrypted here; doors never get them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import PermissionsMixin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from agents.features.mcp_client.connections import (
    connection_to,
    server_address,
    without_secrets,
    without_telling,
)
from agents.features.mcp_client.models import McpServer, McpTransport
from agents.features.mcp_client.programs import IDENTITY
from agents.features.mcp_client.protocol.definitions import Listing
from agents.features.mcp_client.protocol.errors import McpError
from agents.features.mcp_client.queries import CONFIGURE_MCP, agents_with, agents_with_servers
from agents.models import Agent, Effect
from agents.secret_text import HIDDEN, SecretText
from agents.selectors.visible import Person
from agents.services.audit import changes_between, fields_of, record
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from sandbox.linux.egress.rules import RuleError, parse_allowlist

ACCEPT = "vel_mcp_client.accept_mcp_tools"
EFFECTS = (str(Effect.READ), str(Effect.EXTERNAL))
FETCH_SECONDS = 60.0
MAX_ARGUMENTS = 50
MAX_SECRETS = 30
LONGEST_ARGUMENT = 8_000
LONGEST_SECRET = 8_000
_AUDITED = (
    "slug",
    "description",
    "enabled",
    "transport",
    "command",
    "arguments",
    "toolbox",
    "network",
    "allowed_hosts",
    "sees_files",
    "url",
    "secret_names",
    "call_seconds",
)
"""Fields that the audit log names. Never the secrets."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_OWN_HEADERS = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "transfer-encoding", "upgrade"),
        *("accept", "accept-encoding", "mcp-session-id", "mcp-protocol-version", "last-event-id"),
    }
)


def may_configure(user: Person) -> bool:
    """Return whether `user` may define servers and assign them to agents."""
    return isinstance(user, PermissionsMixin) and user.has_perm(CONFIGURE_MCP)


def may_accept(user: Person) -> bool:
    """Return whether `user` may accept tools of servers for agents."""
    return isinstance(user, PermissionsMixin) and user.has_perm(ACCEPT)


def must_configure(by: Person) -> None:
    """Raise `NotAllowed` if `by` may not define servers."""
    if not may_configure(by):
        raise NotAllowed(f"Defining MCP servers needs the permission {CONFIGURE_MCP}.")


@sensitive_variables("secrets")
def check_server(server: McpServer, secrets: Mapping[str, str] | None) -> None:
    """Check a server as `save_server` does.

    Raises `InvalidRequest` with the field, without secrets.
    """
    try:
        server.full_clean(exclude=["secrets", "tools", "found", "found_refused", "created_by"])
    except ValidationError as error:
        field, problems = next(iter(error.message_dict.items()))
        raise _invalid("" if field == "__all__" else field, str(problems[0])) from None
    if server.transport == McpTransport.STDIO:
        _check_program(server)
    else:
        try:
            server_address(server.url)
        except InvalidRequest as problem:
            raise _invalid("url", problem.message) from None
        if server.command or server.arguments:
            raise _invalid("command", "A server over HTTP has a URL and no program.")
    if secrets is not None:
        _check_secrets(server, secrets)
    elif (stored := McpServer.objects.filter(pk=server.pk).first()) is not None:
        _check_keeps_secrets(stored, server)


@sensitive_variables("secrets")
@transaction.atomic
def save_server(
    server: McpServer, *, by: Person, secrets: Mapping[str, str] | None = None
) -> McpServer:
    """Store a server.

    `secrets` replace all of its secrets: variables of its program's environment, or headers of its
    requests; None leaves them. Raises `NotAllowed`, and `InvalidRequest` that names the field.
    """
    must_configure(by)
    check_server(server, secrets)
    stored = McpServer.objects.select_for_update().filter(pk=server.pk).first()
    if stored is not None and stored.slug != server.slug:
        raise _invalid("slug", "The slug stays: agents know the server by it.")
    if stored is not None and secrets is None:
        _check_keeps_secrets(stored, server)
    if secrets is not None:
        server.secret_names = sorted(secrets)
        server.secrets = SecretText.seal(json.dumps(dict(secrets))) if secrets else SecretText("")
    elif stored is None:
        server.secrets = SecretText("")
    if stored is None:
        server.created_by_id = by.pk
    else:  # this form does not change a person's acceptance of tools
        for name in ("tools", "pinned_at", "pinned_by_id", "found", "found_digest"):
            setattr(server, name, getattr(stored, name))
    before = None if stored is None else fields_of(stored, *_AUDITED)
    changes = changes_between(before, fields_of(server, *_AUDITED))
    if secrets is not None and (secrets or before is not None):
        changes["secrets"] = (HIDDEN, "another (secret)" if secrets else "")
    server.save()
    action = "mcp_server.created" if stored is None else "mcp_server.changed"
    record(action, server, name=server.slug, by=by, changes=changes)
    return server


@transaction.atomic
def remove_server(server_id: str, *, by: Person) -> None:
    """Delete a server that no agent has. Raises `Conflict` that names its agents.

    Also raises `NotAllowed` and `NotFound`.
    """
    must_configure(by)
    row = _locked(server_id)
    users = agents_with(row.slug, agents_with_servers(Agent.objects.all()))
    if users:
        raise Conflict(
            f"These agents have it: {', '.join(users[:10])}. Remove it from them first, or disable "
            "it.",
            code="mcp_server_in_use",
        )
    record("mcp_server.removed", row, name=row.slug, by=by)
    row.delete()


def fetch_tools(server_id: str, *, by: Person) -> McpServer:
    """Fetch the tools of a server and store them, so that a person can accept them.

    Blocks for a minute and a half at most.

    Raises `NotAllowed`, `NotFound`, and `Conflict` with the reason, which the server's page keeps.
    """
    must_configure(by)
    row = McpServer.objects.filter(pk=server_id).first()
    if row is None:
        raise NotFound("There is no such MCP server.")
    connection = None
    try:
        connection = connection_to(row, marker=f"mcp-{row.pk}")
        connection.open().result(FETCH_SECONDS)
        listing = connection.listing().result(FETCH_SECONDS)
    except (McpError, TimeoutError) as error:
        reason = error.message if isinstance(error, McpError) else "It did not answer in time."
        reason = without_secrets(row, reason)
        store_problem(row.pk, reason)
        raise Conflict(reason, code="mcp_server_unavailable") from None
    finally:
        if connection is not None:
            connection.close()
            connection.join()
    return store_listing(row.pk, without_telling(listing, row), by=by)


@transaction.atomic
def store_listing(server_id: str, listing: Listing, *, by: Person) -> McpServer:
    """Store the list that `by` has fetched, so that a person can accept it."""
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
    """Store the reason why a server did not answer, for its page."""
    row = _locked(server_id)
    row.checked_at = timezone.now()
    row.problem = problem[:2000].replace("\x00", "\N{REPLACEMENT CHARACTER}")
    row.save(update_fields=["checked_at", "problem", "updated_at"])


@transaction.atomic
def note_listing(server_id: str, listing: Listing) -> None:
    """Store a list that a run has received, if it differs from the last one."""
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
    """Accept these tools of the last list: agents get them, and no others of the server.

    `digest` identifies the list that `by` has seen; `effects` has `read` or `external` for each
    accepted tool. Raises `NotAllowed`, `InvalidRequest`, and `Conflict` (code `stale`) if the
    server has sent another list since.
    """
    if not may_accept(by):
        raise NotAllowed(f"Accepting the tools of MCP servers needs the permission {ACCEPT}.")
    row = _locked(server_id)
    if row.found is None or row.found_digest != digest:
        raise Conflict(
            "The server's list of tools has changed since you saw it. Reload and review it again.",
            code="stale",
        )
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


def _check_program(server: McpServer) -> None:
    if not server.command.strip() or "\x00" in server.command:
        raise _invalid("command", "Give the program to run, as mcp-server-time.")
    if server.url:
        raise _invalid("url", "A program in the sandbox has no URL.")
    arguments: Any = server.arguments
    if not isinstance(arguments, list) or len(arguments) > MAX_ARGUMENTS:
        raise _invalid("arguments", f"Give a list of at most {MAX_ARGUMENTS} texts.")
    for each in arguments:
        if not isinstance(each, str) or len(each) > LONGEST_ARGUMENT or not _is_text(each):
            raise _invalid("arguments", f"Each is a text of at most {LONGEST_ARGUMENT} characters.")
    try:
        if not isinstance(server.allowed_hosts, list):
            raise RuleError('Give a list of hosts, as ["pypi.org", "*.example.org"].')
        parse_allowlist(server.allowed_hosts)
    except RuleError as error:
        raise _invalid("allowed_hosts", str(error)) from None


@sensitive_variables("secrets", "value")
def _check_secrets(server: McpServer, secrets: Mapping[str, str]) -> None:
    if len(secrets) > MAX_SECRETS:
        raise _invalid("secrets", f"There may be {MAX_SECRETS}.")
    is_http = server.transport == McpTransport.HTTP
    names: set[str] = set()
    for name, value in secrets.items():
        form = _HEADER if is_http else _VARIABLE
        displayed = f"{name[:40]!r}"
        if not form.fullmatch(name) or name.lower() in names:
            what = "header" if is_http else "variable"
            raise _invalid("secrets", f"{displayed} is no name of a {what}, or is there twice.")
        if is_http and name.lower() in _OWN_HEADERS:
            raise _invalid("secrets", f"The header {displayed} is set by Vel.")
        if not value or len(value) > LONGEST_SECRET:
            raise _invalid("secrets", f"The value of {displayed} is empty or too long.")
        if is_http and not _VALUE.fullmatch(value):
            raise _invalid(
                "secrets", f"The value of {displayed} has characters no header can have."
            )
        if not _is_text(value):
            raise _invalid("secrets", f"The value of {displayed} holds a NUL or half a character.")
        names.add(name.lower() if is_http else name)


def _check_keeps_secrets(stored: McpServer, server: McpServer) -> None:
    """Refuse to send stored secrets to another server or program.

    A person who does not know them could read them there.
    """
    changed = [name for name in IDENTITY if getattr(stored, name) != getattr(server, name)]
    if changed and stored.secret_names:
        what = changed[0].replace("_", " ")
        raise _invalid("secrets", f"Enter the secrets again: the {what} is another.")


def _is_text(text: str) -> bool:
    return not any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in text)


def _invalid(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: {reason}" if field else reason, code="invalid_mcp_server")
