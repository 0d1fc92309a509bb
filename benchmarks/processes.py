"""Start the processes of a benchmark, send commands to them, measure their memory and stop them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HARNESSES = ROOT / "benchmarks" / "harnesses"
STOP_SECONDS = 20.0


class HarnessFailed(Exception):
    """Raised if a harness fails or does not answer in time."""


class Child:
    """A process with its own session, so that `close` also ends the processes that it started."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], **options: Any
    ) -> None:
        self.process = subprocess.Popen(
            arguments, env=dict(environment), cwd=ROOT, start_new_session=True, **options
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def close(self) -> None:
        """Ask the main process to stop, wait up to `STOP_SECONDS`, then kill the whole session.

        Only the main process is asked.
        """
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all have ended
        self.process.wait()


class Harness(Child):
    """A process that speaks `harnesses/protocol.py`."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], *, timeout: float = 120
    ) -> None:
        super().__init__(
            arguments, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.name = Path(arguments[1]).stem
        self._answer(timeout)

    def call(self, command: str, *, timeout: float = 120, **arguments: Any) -> Any:
        """Send a command and return its result. Raises `HarnessFailed` on an error or a timeout."""
        assert self.process.stdin is not None
        print(json.dumps({"do": command, **arguments}), file=self.process.stdin, flush=True)
        return self._answer(timeout)

    def _answer(self, timeout: float) -> Any:
        stdout = self.process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], timeout)[0]:
            raise HarnessFailed(f"{self.name} did not answer within {timeout:g} s")
        line = stdout.readline()
        if not line:
            code = self.process.wait()
            raise HarnessFailed(f"{self.name} ended with exit code {code}; its stderr says why")
        answer = json.loads(line)
        if "error" in answer:
            raise HarnessFailed(f"{self.name} failed:\n{answer['error']}")
        return answer["result"]


@contextmanager
def fake_model() -> Iterator[str]:
    """Run the model's server in a separate process. Yield its URL. Raises `HarnessFailed`."""
    server = Child(
        [sys.executable, str(ROOT / "benchmarks" / "server.py")],
        clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.process.stdout is not None
        url = server.process.stdout.readline().strip()
        if not url:
            code = server.process.wait()
            raise HarnessFailed(f"the model's server ended with exit code {code}")
        yield url
    finally:
        server.close()


def clean_environment(**values: str) -> dict[str, str]:
    """Return the environment without the variables that would influence a harness."""
    ours = ("VEL_", "ANTHROPIC_", "DJANGO_", "LANGSMITH_", "LANGCHAIN_", "DATABASE_URL", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHONHASHSEED": "0", **values}


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Yield a directory that the accounts of the sandbox can traverse."""
    with tempfile.TemporaryDirectory(prefix="vel-bench-", dir="/var/tmp") as name:
        path = Path(name)
        path.chmod(0o711)
        yield path


def vel_environment(directory: Path, model_url: str, database_url: str = "") -> dict[str, str]:
    """Return the environment of a Vel process with its data in `directory`. SQLite by default."""
    return clean_environment(
        DJANGO_SETTINGS_MODULE="velproject.settings",
        PYTHONPATH=str(ROOT),
        VEL_DATA_DIR=str(directory),
        VEL_SECRET_KEY="only-for-benchmarks-" + "0" * 40,
        VEL_LOG_LEVEL="WARNING",
        VEL_PROVIDER="anthropic",
        VEL_TITLE_MODEL="off",
        ANTHROPIC_BASE_URL=model_url,
        DATABASE_URL=database_url,
    )


@dataclass(frozen=True)
class Weight:
    """Memory of one process in bytes. `pss` divides shared pages among the processes with them."""

    rss: int
    pss: int


def weigh(pid: int) -> Weight:
    """Read /proc/PID/smaps_rollup (Linux)."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        fields[name] = int(rest.split()[0]) * 1024
    return Weight(fields["Rss"], fields["Pss"])


def descendants(ancestor: int) -> dict[int, str]:
    """Return `ancestor` and all its descendants, with their command lines.

    Raises `HarnessFailed` without /proc, which only Linux has.
    """
    if not Path("/proc/self/stat").exists():
        raise HarnessFailed("processes are weighed by /proc, which only Linux has")
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # the process has ended
            parents[int(entry.name)] = int(fields[1])
    found = [ancestor]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        for pid in found
    }


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the sum of the user and system time of these processes, in seconds (Linux)."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
