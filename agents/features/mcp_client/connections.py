"""Connections to servers: a sandbox for programs, and a check of addresses for HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from django.views.decorators.debug import sensitive_variables

from agents.features.mcp_client.models import McpServer, McpTransport
from agents.features.mcp_client.programs import ProgramState, held_state
from agents.features.mcp_client.protocol.definitions import Definition, Listing
from agents.features.mcp_client.protocol.errors import McpError, McpMissing
from agents.features.mcp_client.protocol.limits import SERVER_SECONDS
from agents.features.mcp_client.protocol.transport import HttpTarget
from agents.features.mcp_client.settings import McpSettings
from agents.secret_text import SecretUnreadable
from agents.services.errors import InvalidRequest
from agents.services.outside_address import (
    OutsideAddress,
    Wording,
    parse_outside_url,
    tls_context,
)
from agents.services.placement import toolbox_here
from sandbox.base import Execution
from sandbox.cancellation import Cancellation
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.namespace import HOME, PYTHON
from sandbox.policy import Mount, Network, SandboxPolicy
from sandbox.result import ExecutionResult
from sandbox.toolboxes.find import HeldToolbox
from sandbox.toolboxes.toolbox import PYTHON_IN_IT, VARIABLES, Toolbox
from sandbox.uids import uid_for
from sandbox.workspace import Workspace

if TYPE_CHECKING:
    from agents.features.mcp_client.protocol.connection import Connection

KEPT_OUTPUT = 20_000
"""Bytes of stderr."""
_WORDS = Wording("the MCP server", "MCP servers are reached", "one", "VEL_MCP_PRIVATE_HOSTS")
OpenWorkspace = Callable[[], Workspace]
"""Opens the files. Blocks. Raises `SandboxError`."""


@sensitive_variables()
def connection_to(
    server: McpServer, *, marker: str, workspace: OpenWorkspace | None = None
) -> Connection:
    """Return a connection that is not open. `workspace` opens the run's files.

    `marker` is the name with which the processes of the run are found and killed. Without a
    workspace, as when a person fetches the tools, a program sees no files. Raises `McpError`.
    """
    try:
        secrets = secrets_of(server)
    except SecretUnreadable as problem:
        raise McpError(
            f"The MCP server {server.slug} cannot be used. Only an operator can fix this. "
            f"{problem}",
            "not_connected",
        ) from None
    if find_spec("mcp") is None:
        raise McpMissing
    # The package mcp is an optional dependency, and takes a second and 30 MB: imported only for a
    # server.
    from agents.features.mcp_client.protocol import connection  # noqa: PLC0415

    if server.transport == McpTransport.HTTP:
        return connection.over_http(server.slug, _target(server, secrets))
    start = partial(_start, server, secrets, marker, workspace)
    return connection.to_program(server.slug, start)


@sensitive_variables()
def secrets_of(server: McpServer) -> dict[str, str]:
    """Return the decrypted secrets. Raises `SecretUnreadable`."""
    if not server.secret_names:
        return {}
    found: dict[str, str] = json.loads(server.secrets.reveal())
    return found


def server_address(url: str) -> OutsideAddress:
    """Return the parts of a server's URL. Raises `InvalidRequest`."""
    return parse_outside_url(url, McpSettings.now().MCP_PRIVATE_HOSTS, _WORDS)


@sensitive_variables()
def without_secrets(server: McpServer, text: str) -> str:
    """Return a text of a server without its own secrets of at least 8 characters.

    If they cannot be decrypted, the text is returned as it is.
    """
    try:
        secrets = secrets_of(server)
    except SecretUnreadable:
        return text
    return hide(text, tuple(secrets.values()))


@sensitive_variables()
def without_telling(listing: Listing, server: McpServer) -> Listing:
    """Return `listing` without tools that contain a secret of the server: people see lists."""

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
    """Replace secrets of at least 8 characters. Shorter ones would remove words of answers."""
    for secret in secrets:
        bare = secret.partition(" ")[2] or secret  # without its scheme, as Bearer
        for each in (secret, bare):
            if len(each) >= 8:
                text = text.replace(each, "(secret)")
    return text


def _target(server: McpServer, secrets: dict[str, str]) -> HttpTarget:
    try:
        address = server_address(server.url)
    except InvalidRequest as problem:
        raise McpError(
            f"The MCP server {server.slug} cannot be used. {problem}", "not_connected"
        ) from None
    return HttpTarget(
        url=f"{'https' if address.tls else 'http'}://{address.authority}{address.path}",
        endpoint=address.endpoint,
        tls=tls_context() if address.tls else None,
        world=address.world,
        headers=secrets,
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
    held = toolbox_here(server.toolbox) if server.toolbox else None
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
    """Return the policy of a program.

    It starts in an empty home, so that it imports no code from the agent's files or its own state.
    """
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
    """A running program, which keeps its toolbox and its state from removal."""

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
