"""The environment of a toolbox during its build, and the runs of pip in it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sandbox.linux.namespace import PYTHON
from sandbox.toolboxes.toolbox import TARGET, PythonFacts, ToolboxError

_IMPATIENT = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "10"}
_NOT_FOR_PIP = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_EDITABLE")
"""Settings of the operator's pip that would change the target of an installation."""
_QUIETLY = (
    *("--no-input", "--disable-pip-version-check", "--progress-bar=off", "--no-compile"),
    *("--no-warn-script-location", "--root-user-action=ignore"),
)
_SHOWN_LINES = 15


class PipFailed(ToolboxError):
    """Raised if pip failed. `output` is the end of pip's output."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


class Environment:
    """A new Python environment in `directory`, which is created.

    Processes that work in the environment inherit the descriptor `lock`. If this process is killed,
    they may continue for a while, and the lock excludes other builds for that time.
    """

    def __init__(self, directory: Path, facts: PythonFacts, lock: int) -> None:
        self.directory = directory
        self.site = directory / f"lib/python{facts.short}/site-packages"
        self._python = directory / "bin/python3"
        self._lock = lock
        self._pip: tuple[str, ...] = ("-m", "pip")
        self._make(facts)
        if not self._copy_pip() and self._run(self._python, "-m", "ensurepip").returncode != 0:
            raise ToolboxError(
                "No pip was found to build a toolbox. Install it next to Vel "
                "(python -m ensurepip, or uv pip install pip), or install the package python3-venv."
            )

    def install(
        self,
        wanted: Sequence[str],
        listed: Path | None,
        *,
        index_url: str,
        allow_source: bool,
        impatient: bool,
    ) -> None:
        """Install checked requirements, and those of the file `listed`, with pip.

        With `impatient`, pip gives up soon, unless the environment sets its retries or timeout.
        Raises `PipFailed`.
        """
        options = [] if allow_source else ["--only-binary=:all:"]
        if listed is not None:
            options.append(f"--requirement={listed}")
        # Set in the environment and not as arguments, because every account can list arguments.
        index = {"PIP_INDEX_URL": index_url} if index_url else {}
        arguments = (*self._pip, "install", *_QUIETLY, *options, "--", *wanted)
        patience = _IMPATIENT if impatient else {}
        unset = {name: value for name, value in patience.items() if name not in os.environ}
        pip = self._run(self._python, *arguments, **index, **unset)
        if pip.returncode != 0:
            lines = [line[:300] for line in pip.stdout.splitlines() if line.strip()]
            raise PipFailed(
                f"pip could not install this (exit code {pip.returncode}); nothing has changed.",
                "\n".join(lines[-_SHOWN_LINES:]),
            )

    def complete(self) -> None:
        """Finish the environment, so that it works read-only at `TARGET`.

        Do not start its Python after this step: the start alone would run the code of a package
        that has a .pth file.
        """
        here = os.fsencode(self.directory)
        for script in (self.directory / "bin").iterdir():
            if not script.is_symlink() and script.is_file():
                content = script.read_bytes()
                if content.startswith(b"#!"):
                    script.write_bytes(content.replace(here, TARGET.encode()))
        for record in self.site.glob("*.dist-info/direct_url.json"):
            record.unlink()  # it contains paths of this host, which commands must not see
        # Compile the bytecode now: commands cannot write it, so each command would compile
        # everything. A package may contain files for another Python; their errors do not matter.
        # pip is left out: agents seldom start it, and compiling it takes half the time of a small
        # build.
        strip = ("-s", str(self.directory), "-p", TARGET)
        arguments = ("-q", "-j0", *strip, "-x", "/site-packages/pip/", "lib")
        self._run(Path(PYTHON), "-S", "-m", "compileall", *arguments)

    def _make(self, facts: PythonFacts) -> None:
        """Create an environment's files (PEP 405) like the module venv, which may be missing."""
        self.site.mkdir(parents=True)
        (self.directory / "bin").mkdir()
        self._python.symlink_to(PYTHON)
        (self.directory / "bin/python").symlink_to("python3")
        (self.directory / "lib64").symlink_to("lib")
        (self.directory / "pyvenv.cfg").write_text(
            f"home = {os.path.dirname(PYTHON)}\ninclude-system-site-packages = false\n"
            f"version = {facts.version}\n"
        )

    def _copy_pip(self) -> bool:
        """Copy Vel's own pip into the environment, so that `pip list` works for agents.

        This needs no index. The build runs the original, which has bytecode. The copy has none,
        because compiling it takes as long as a small build. The build runs pip with the same runner
        as pip's option --python, which imports pip only from its own directory.
        """
        try:
            pip = importlib.metadata.distribution("pip")
        except importlib.metadata.PackageNotFoundError:
            return False
        for file in pip.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                copy = self.site / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(pip.locate_file(file)), copy)
        script = self.directory / "bin/pip"
        script.write_text(
            f"#!{TARGET}/bin/python3\nimport sys\nfrom pip._internal.cli.main import main\n"
            "sys.exit(main())\n"
        )
        script.chmod(0o755)
        runner = Path(str(pip.locate_file("pip/__pip-runner__.py")))
        if runner.is_file():
            self._pip = (str(runner),)
        return bool(pip.files)

    def _run(
        self, python: Path, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_PIP}
        return subprocess.run(
            [python, "-I", "-B", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**kept, **variables},
            cwd=self.directory,
            pass_fds=[self._lock],
            umask=0o022,
            check=False,
        )
