"""OS sandbox: isolates the commands and files of an agent from the host.

This package does not import Django or any other package of Vel. Each name is loaded at its first
use, because most processes need only a few of the modules.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.backends import CompositeBackend, StateFilesystemBackend
    from sandbox.backends.sandboxed import SandboxFilesystemBackend
    from sandbox.base import BaseSandbox, Execution
    from sandbox.cancellation import Cancellation
    from sandbox.create import create_sandbox
    from sandbox.errors import SandboxError, SandboxNotAvailableError, SandboxUnavailable
    from sandbox.linux.bubblewrap import BubblewrapSandbox
    from sandbox.linux.probe import HostReport, check_host
    from sandbox.policy import Limits, Mount, Network, SandboxPolicy
    from sandbox.result import ExecutionResult
    from sandbox.workspace import Workspace

__all__ = [
    "BaseSandbox",
    "BubblewrapSandbox",
    "Cancellation",
    "CompositeBackend",
    "Execution",
    "ExecutionResult",
    "HostReport",
    "Limits",
    "Mount",
    "Network",
    "SandboxError",
    "SandboxFilesystemBackend",
    "SandboxNotAvailableError",
    "SandboxPolicy",
    "SandboxUnavailable",
    "StateFilesystemBackend",
    "Workspace",
    "check_host",
    "create_sandbox",
]

_MODULES = {
    "BaseSandbox": "base",
    "BubblewrapSandbox": "linux.bubblewrap",
    "Cancellation": "cancellation",
    "CompositeBackend": "backends",
    "Execution": "base",
    "ExecutionResult": "result",
    "HostReport": "linux.probe",
    "Limits": "policy",
    "Mount": "policy",
    "Network": "policy",
    "SandboxError": "errors",
    "SandboxFilesystemBackend": "backends.sandboxed",
    "SandboxNotAvailableError": "errors",
    "SandboxPolicy": "policy",
    "SandboxUnavailable": "errors",
    "StateFilesystemBackend": "backends",
    "Workspace": "workspace",
    "check_host": "linux.probe",
    "create_sandbox": "create",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
