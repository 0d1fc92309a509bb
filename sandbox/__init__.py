"""OS sandbox: isolates the commands and files of an agent from the host.

This package does not import Django or any other package of Vel.
"""

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
