"""Test a sandbox before use: a command really attempts what must be refused."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path

from sandbox.base import BaseSandbox

_SECRET = "not for commands"  # noqa: S105 - the trial must not be able to read it


def leaks(sandbox: BaseSandbox, inside: Path, outside: Path) -> list[str]:
    """Return how a command in `sandbox` could do too much or too little; [] is good.

    `inside` is the directory that it may write, `outside` one that it must not even read. Both
    are empty directories of the caller.
    """
    (outside / "secret").write_text(_SECRET)
    (outside / "target").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = sandbox.execute(_script(inside, outside, port), timeout=30)
        server.setblocking(False)
        reached = _was_reached(server)
    found = []
    if result.exit_code != 0 or result.stdout.split()[:1] != ["begin"]:
        found.append(f"a plain command fails ({result.stderr.strip()[:200]})")
    if not (inside / "written").exists():
        found.append("its own directory cannot be written")
    if _SECRET in result.stdout:
        found.append("a file outside can be read")
    if (outside / "made").exists() or (outside / "target").stat().st_size:
        found.append("files outside can be written")
    if reached:
        found.append("this machine's network can be reached")
    return found


def _script(inside: Path, outside: Path, port: int) -> str:
    mine, theirs = shlex.quote(str(inside)), shlex.quote(str(outside))
    return (
        f"echo begin; echo x > {mine}/written; cat {theirs}/secret; ln -s {theirs} {mine}/link;"
        f" cat {mine}/link/secret; echo x > {theirs}/made; echo x > {mine}/link/target;"
        f" (exec 3<>/dev/tcp/127.0.0.1/{port}); curl -s -m 1 http://127.0.0.1:{port}/; exit 0"
    )


def _was_reached(server: socket.socket) -> bool:
    try:
        connection, _ = server.accept()
    except BlockingIOError:
        return False
    connection.close()
    return True
