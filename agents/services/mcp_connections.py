"""From a server's row to a connection: its sandbox, or its way through the check of addresses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from django.views.decorators.debug import sensitive_variables

from agents.mcp.connection import Connection
from agents.mcp.definitions import Definition, Listing
from agents.mcp.errors import McpError
from agents.mcp.http import HttpTransport
from agents.mcp.limits import SERVER_SECONDS
from agents.mcp.stdio import StdioTransport
from agents.mcp.transport import HttpTarget, Transport
from agents.models import McpServer, McpTransport
from agents.secret_text import SecretUnreadable
from agents.selectors.visible import Person
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.mcp_servers import must_configure, secrets_of, server_address
from agents.services.mcp_state import ProgramState, held_state
from agents.services.mcp_tools import store_listing, store_problem
from agents.services.outside_address import tls_context
from agents.settings import DataSettings
from sandbox.base import Execution
from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.cancellation import Cancellation
from sandbox.namespace import HOME, PYTHON
from sandbox.policy import Mount, Network, SandboxPolicy
from sandbox.result import ExecutionResult
from sandbox.toolbox import PYTHON_IN_IT, VARIABLES, Toolbox
from sandbox.toolbox_find import HeldToolbox, hold_toolbox
from sandbox.uids import uid_for
from sandbox.workspace import Workspace

KEPT_OUTPUT = 20_000
"""Bytes of what a server prints to stderr."""
FETCH_SECONDS = 60.0

OpenWorkspace = Callable[[], Workspace]
"""Blocks. Raises `SandboxError`."""


@sensitive_variables()
def connection_to(
    server: McpServer, *, marker: str, workspace: OpenWorkspace | None = None
) -> Connection:
    """Not opened yet. `marker` is the run's; `workspace` opens the files of its thread.

    Without a workspace, as when a person looks at the tools, a program sees no files. Raises
    `McpError`.
    """
    try:
        secrets = secrets_of(server)
    except SecretUnreadable as problem:
        raise McpError(
            f"The MCP server {server.slug} cannot be used, which only an operator can mend. "
            f"{problem}",
            "not_connected",
        ) from None
    transport: Transport
    if server.transport == McpTransport.HTTP:
        transport = _http(server, secrets)
    else:
        transport = StdioTransport(partial(_start, server, secrets, marker, workspace))
    return Connection(server.slug, transport)


def fetch_tools(server_id: str, *, by: Person) -> McpServer:
    """Ask a server for its tools and keep what it says, to be accepted. Blocks for a minute at
    most.

    Raises `NotAllowed`, `NotFound`, and `Conflict` with the reason, which the server's page keeps.
    """
    must_configure(by)
    row = McpServer.objects.filter(pk=server_id).first()
    if row is None:
        raise NotFound("There is no such MCP server.")
    connection: Connection | None = None
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


@sensitive_variables()
def without_secrets(server: McpServer, text: str) -> str:
    """`text` of a server's, with its own secrets left out if it repeats them."""
    try:
        secrets = secrets_of(server)
    except SecretUnreadable:
        return text
    return hide(text, tuple(secrets.values()))


@sensitive_variables()
def without_telling(listing: Listing, server: McpServer) -> Listing:
    """`listing` without tools that repeat a secret of the server's: lists are kept and shown."""

    def tells(tool: Definition) -> bool:
        text = json.dumps(tool.as_json(), ensure_ascii=False)
        return without_secrets(server, text) != text

    kept = tuple(tool for tool in listing.tools if not tells(tool))
    refused = [
        *listing.refused,
        *(
            (tool.name, "it repeats a secret of the server")
            for tool in listing.tools
            if tells(tool)
        ),
    ]
    return Listing(kept, tuple((without_secrets(server, name), why) for name, why in refused))


@sensitive_variables()
def hide(text: str, secrets: tuple[str, ...]) -> str:
    """A short secret is no secret, and would take words out of answers."""
    for secret in secrets:
        bare = secret.partition(" ")[2] or secret  # without its scheme, as Bearer
        for each in (secret, bare):
            if len(each) >= 8:
                text = text.replace(each, "(secret)")
    return text


def _http(server: McpServer, secrets: dict[str, str]) -> HttpTransport:
    try:
        address = server_address(server.url)
    except InvalidRequest as problem:
        raise McpError(
            f"The MCP server {server.slug} cannot be used. {problem}", "not_connected"
        ) from None
    return HttpTransport(
        HttpTarget(
            url=f"{'https' if address.tls else 'http'}://{address.authority}{address.path}",
            endpoint=address.endpoint,
            tls=tls_context() if address.tls else None,
            world=address.world,
            headers=secrets,
        )
    )


@sensitive_variables()
def _start(
    server: McpServer,
    secrets: dict[str, str],
    marker: str,
    open_workspace: OpenWorkspace | None,
    stdin: int,
    on_stdout: Callable[[bytes], None],
    cancel: Cancellation,
) -> Execution:
    workspace = open_workspace() if open_workspace is not None else None
    held = hold_toolbox(DataSettings.now().toolboxes, server.toolbox) if server.toolbox else None
    with ExitStack() as until_it_ends:
        state = until_it_ends.enter_context(held_state(workspace, server))
        policy = _policy(server, secrets, workspace, state, held.toolbox if held else None)
        execution = BubblewrapSandbox(policy).start_server(
            [server.command, *map(state.filled_in, server.arguments)],
            stdin=stdin,
            on_stdout=on_stdout,
            seconds=SERVER_SECONDS,
            marker=marker,
            cancel=cancel,
        )
        return _Holding(execution, held, until_it_ends.pop_all())


def _policy(
    server: McpServer,
    secrets: dict[str, str],
    workspace: Workspace | None,
    state: ProgramState,
    toolbox: Toolbox | None,
) -> SandboxPolicy:
    """It starts in its own empty home: what an agent has put beside its files is not imported,
    nor what it was made to write into what it keeps."""
    uid = gid = uid_for(0) if os.geteuid() == 0 else None
    files: tuple[Mount, ...] = ()
    if workspace is not None:
        uid, gid = workspace.uid, workspace.gid
        if server.sees_files:
            files = tuple(Mount(mount.source, mount.target) for mount in workspace.policy().mounts)
    return SandboxPolicy(
        mounts=(
            *files,
            *((state.mount,) if state.mount else ()),
            *(toolbox.mounts if toolbox else ()),
        ),
        working_dir=HOME,
        network=Network(server.network),
        allowed_hosts=tuple(server.allowed_hosts),
        limits=state.limits(KEPT_OUTPUT),
        environment=(*(VARIABLES if toolbox else ()), *state.environment(secrets).items()),
        uid=uid,
        gid=gid,
        python=PYTHON_IN_IT if toolbox else PYTHON,
    )


class _Holding(Execution):
    """Keeps the toolbox from being removed, and others from the state, as long as the program
    runs."""

    def __init__(self, inner: Execution, held: HeldToolbox | None, state: ExitStack) -> None:
        self.pid, self.marker = inner.pid, inner.marker
        self._inner = inner
        self._held = held
        self._state = state

    def wait(self) -> ExecutionResult:
        with self._state:
            return self._inner.wait()

    def kill(self) -> None:
        self._inner.kill()
