"""Backend of a working directory: files on the host, and commands in a sandbox."""

from __future__ import annotations

from pathlib import Path

from sandbox.backends.protocol import Result
from sandbox.backends.tree import TreeBackend
from sandbox.create import create_sandbox
from sandbox.own_directory.rules import FileRules


class SandboxFilesystemBackend(TreeBackend):
    """Backend of a host directory that also runs commands in an OS sandbox.

    `working_dir` is `/` for the file tools. Commands start in `working_dir` at its path on the
    host, so relative paths mean the same in both. A missing directory is created. `timeout` is the
    default wall time of a command in seconds. Neither commands nor file tools can change files that
    programs outside the sandbox run, such as git hooks, unless `rules` allow it.

    Raises SandboxUnavailable if this host cannot sandbox (commands never run without a sandbox) and
    SandboxSetupError for a directory that commands must not get.

    >>> files = SandboxFilesystemBackend("./work")
    >>> files.write_file("/notes.md", "All is well.")["path"]
    '/notes.md'
    >>> files.execute("cat notes.md")["stdout"]
    'All is well.'
    """

    supports_execute = True

    def __init__(
        self,
        working_dir: str | Path,
        network: bool = False,
        timeout: float = 30,
        rules: FileRules | None = None,
    ) -> None:
        self.sandbox = create_sandbox(working_dir, network=network, timeout=timeout, rules=rules)
        super().__init__(working_dir, guard=self.sandbox.guard)
        self.working_dir = self.root
        self.rules = rules or FileRules()

    def execute(self, command: str, timeout: float | None = None) -> Result:
        """Run a shell command in `working_dir`, and return ExecutionResult.to_dict()."""
        return self.sandbox.execute(command, timeout).to_dict()

    def execute_python(self, code: str, timeout: float | None = None) -> Result:
        """Run Python code in `working_dir`, and return ExecutionResult.to_dict()."""
        return self.sandbox.execute_python(code, timeout).to_dict()
