"""Run the table without the guard and with it, as the current account.

    python -m tests.attacks.runner            prints the result of each attempt as JSON

Needs only the standard library and `sandbox`, so an ordinary user's interpreter can run it.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sandbox import BaseSandbox, create_sandbox
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.workspace import Workspace, prepare
from tests.attacks import approved, own_directory, readers
from tests.attacks.attack import Attack
from tests.attacks.driver import PRELUDE
from tests.attacks.table import ATTACKS, bombs, host, unapproved
from tests.attacks.world import World, processes_with, reachable_place, state_of

PYTHON = "/usr/bin/python3"
DRIVER = Path(__file__).with_name("driver.py").read_text()
LONGEST = 300.0
"""Time limit in seconds of one batch; a longer time is a hang."""

HEARING = 1.0
"""Seconds to wait for data that was sent to the host's sockets or processes."""

Outcomes = dict[str, dict[str, dict[str, object]]]
"""For each attempt by name, for "without" and each sandbox: `success` and `output`."""


def main() -> None:
    began = time.monotonic()
    secret = "vel-secret-" + secrets.token_hex(8)
    outcomes: Outcomes = {}
    with reachable_place() as place:
        world = World(place, secret)
        outcomes |= readers.run(world, host.READINGS)
        readers_took = time.monotonic() - began
        outcomes |= own_directory.run(world)
        with world.services() as services, _tempting_environment(world):
            try:
                harm = _Runs(world, services, outcomes).run()
            finally:
                world.end_victims()
    json.dump(
        {
            "outcomes": outcomes,
            "harm": harm,
            "seconds": round(time.monotonic() - began, 2),
            "readers_seconds": round(readers_took, 2),
        },
        sys.stdout,
    )


@contextmanager
def _tempting_environment(world: World) -> Iterator[None]:
    """Set state that commands would inherit if they were started in the usual way."""
    modules = world.directory("modules", 0o755)
    world.file(modules / "planted_module.py", f"print({world.secret!r})", 0o644)
    startup = world.file(world.place / "startup.sh", f"echo {world.secret}\n", 0o644)
    os.environ |= {
        "DATABASE_PASSWORD": world.secret,
        "BASH_ENV": str(startup),
        "PYTHONPATH": str(modules),
        "LD_LIBRARY_PATH": str(modules),
        "HOME": str(world.outside),
        "TMPDIR": str(world.outside),
    }
    inherited = os.open(world.secret_path, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        yield
    finally:
        os.close(inherited)


class _Runs:
    def __init__(self, world: World, services: dict[str, object], outcomes: Outcomes) -> None:
        self.world = world
        self.outcomes = outcomes
        self.harm: list[str] = []
        uid = world.account.uid if os.geteuid() == 0 else None
        self.base, self.uid = world.place / "threads", uid
        other = prepare(self.base, "other", uid)
        world.file(other.root / "outputs/notes", world.secret)
        database = world.outside / "database"
        self._make_database(database)
        self.services = {
            **services,
            "secret_path": str(world.secret_path),
            "outside": str(world.outside),
            "other_thread": str(other.root / "outputs"),
            "database": str(database),
            "SECONDS": bombs.SECONDS,
        }
        self.other = other

    def _make_database(self, path: Path) -> None:
        import sqlite3  # an ordinary user's Python may lack it, and then its attack is skipped

        with sqlite3.connect(path) as database:
            database.execute("create table t (a)")
            database.execute("insert into t values (?)", (self.world.secret,))
        database.close()
        self.world.own(path)

    def run(self) -> list[str]:
        world = self.world
        self.neighbour = BubblewrapSandbox(self.other.policy(timeout=5 * LONGEST)).start(
            f"sleep {5 * LONGEST}"
        )
        plain = [attack for attack in ATTACKS if not attack.network]
        outward = [attack for attack in ATTACKS if attack.network]
        bare = [attack for attack in (*plain, *outward) if attack.without == "bare"]
        weak = [attack for attack in plain if attack.without == "bwrap"]
        work = str(world.work)
        with ThreadPoolExecutor(1) as other_thread:
            # Concurrently with the others, because most of them only wait.
            bombs_done = other_thread.submit(self._bombs)
            self.outcomes |= approved.run(world, self.base, unapproved.ATTACKS)
            self._batch("without", weak, lambda given: self._plainly(_weak_bwrap(), given))
            before = self._state_outside()
            with_sandbox: dict[str, BaseSandbox] = {
                "create_sandbox": create_sandbox(work, timeout=LONGEST),
                "workspace": BubblewrapSandbox(self._workspace("thread").policy(timeout=LONGEST)),
            }
            for name, sandbox in with_sandbox.items():
                self._batch(name, plain, self._inside(sandbox))
            online = create_sandbox(self._made(work + "-online"), network=True, timeout=LONGEST)
            self._batch("create_sandbox", outward, self._inside(online))
            if before != self._state_outside():
                self.harm.append("the host's files are not as they were")
            if state_of(self.neighbour.pid)[0] != "alive":
                self.harm.append("the neighbour's sandbox was ended")
            # Last, because it changes the targets of the others.
            self._batch("without", bare, lambda given: self._plainly([], given))
            bombs_done.result()
        self.neighbour.kill()
        self.neighbour.wait()
        self.harm += [
            f"a set-uid file: {path}"
            for top in (work, str(self.base))
            for path in Path(top).rglob("*")
            if not path.is_symlink() and path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)
        ]
        return self.harm

    def _made(self, path: str) -> str:
        os.mkdir(path, 0o700)
        self.world.own(path)
        return path

    def _workspace(self, key: str) -> Workspace:
        return prepare(self.base, key, self.uid)

    def _state_outside(self) -> list[object]:
        tops = (self.world.outside, self.other.root, self.world.place / "bare")
        return [
            (str(path), found.st_mode, found.st_uid, found.st_size, found.st_mtime_ns)
            for top in tops
            for path in sorted(top.rglob("*"))
            if (found := path.lstat()) and not path.name.startswith("doomed")
        ]

    def _batch(self, how: str, attacks: list[Attack], execute: Callable[[str], str]) -> None:
        victims: dict[str, tuple[int, tuple[object, ...]]] = {}
        given, slugs = [], {}
        for attack in attacks:
            slug = slugs[attack.name] = f"a-{secrets.token_hex(6)}"
            victim = self.world.victim() if "victim" in attack.source else 0
            victims[attack.name] = (victim, state_of(victim) if victim else ())
            targets = {
                **self.services,
                "slug": slug,
                "mark": str(self.world.outside / slug),
                "victim": victim,
                "neighbour": self.neighbour.pid,
            }
            if "doomed" in attack.source:
                doomed = self.world.outside / f"doomed-{slug}"
                targets["doomed"] = str(self.world.file(doomed, ""))
            given.append({"name": attack.name, "source": attack.source, "targets": targets})
        began = time.monotonic()
        output = execute(json.dumps(given))
        if time.monotonic() - began > LONGEST:
            self.harm.append(f"{how}: hung")
        try:
            reported = json.loads(output.rpartition("\n")[2])
        except ValueError:
            self.harm.append(f"{how}: no report but {output[-500:]!r}")
            reported = {}
        time.sleep(HEARING)
        for attack in attacks:
            report = reported.get(attack.name, {"secrets": [], "tail": "no report"})
            victim, before = victims[attack.name]
            success = self._succeeded(attack, report, slugs[attack.name], victim, before)
            outcome = {"success": success, "output": report["tail"]}
            self.outcomes.setdefault(attack.name, {})[how] = outcome
        self.world.end_victims()

    def _succeeded(
        self,
        attack: Attack,
        report: dict[str, object],
        slug: str,
        victim: int,
        before: tuple[object, ...],
    ) -> bool:
        match attack.proof:
            case "secret":
                return self.world.secret in str(report["secrets"])
            case "printed":
                return "SUCCESS" in str(report["tail"])
            case "touched":
                return os.path.lexists(self.world.outside / slug)
            case "heard":
                return slug.encode() in self.world.heard
            case "victim":
                return state_of(victim) != before
            case "left":
                left = processes_with(slug)
                for pid in left:
                    os.kill(pid, 9)
                return bool(left)

    def _plainly(self, weaker: list[str], given: str) -> str:
        done = subprocess.run(
            [*self.world.prefix, *weaker, PYTHON, "-c", DRIVER],
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.world.bare,
            close_fds=False,
            timeout=LONGEST,
            check=False,
        )
        return done.stdout + ("" if done.stdout else done.stderr)

    def _inside(self, sandbox: BaseSandbox) -> Callable[[str], str]:
        def execute(given: str) -> str:
            marker = f"attacks-{secrets.token_hex(6)}"
            command = [PYTHON, "-c", DRIVER]
            result = sandbox.start(command, stdin=given.encode(), marker=marker).wait()
            if processes_with(f"vel-sandbox:{marker}"):
                self.harm.append("a sandbox outlived its command")
            return result.stdout if result.success else f"{result}"

        return execute

    def _bombs(self) -> None:
        def one(number: int, attack: Attack) -> None:
            slug = f"b-{secrets.token_hex(6)}"
            values = f"slug = {slug!r}; SECONDS = {bombs.SECONDS}\n"
            held = f"{PRELUDE}{values}HOLD = {bombs.HOLD}\n{attack.source}"
            at_once = f"{PRELUDE}{values}HOLD = 0\n{attack.source}"
            workspace = self._workspace(f"bombs-{number}")
            sandbox = BubblewrapSandbox(
                workspace.policy(timeout=bombs.SECONDS, limits=bombs.LIMITS)
            )
            began = time.monotonic()
            result = sandbox.start([PYTHON, "-c", held]).wait()
            if time.monotonic() - began > bombs.SECONDS + LONGEST:
                self.harm.append(f"{attack.name}: took {time.monotonic() - began:.1f} s")
            place = self.world.directory(slug, 0o700)
            bare = subprocess.run(
                [*self.world.prefix, PYTHON, "-c", at_once],
                capture_output=True,
                cwd=place,
                timeout=120,
                check=False,
            )
            self.outcomes[attack.name] = {
                "without": _bomb_outcome(bare.stderr.decode(errors="replace")),
                "workspace": _bomb_outcome(result.stderr),
            }
            # The tree is too deep for the usual removal of the directory.
            subprocess.run(["rm", "-rf", str(place), str(workspace.root)], check=False)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, range(len(bombs.ATTACKS)), bombs.ATTACKS))


def _bomb_outcome(errors: str) -> dict[str, object]:
    return {"success": "SUCCESS" in errors, "output": errors[-300:]}


def _weak_bwrap() -> list[str]:
    """Return a command for namespaces with all capabilities and the host's files, but no filter."""
    options = "--unshare-user --unshare-pid --unshare-net --unshare-uts --unshare-ipc --uid 0"
    return [
        *("bwrap", *options.split(), "--gid", "0", "--cap-add", "ALL", "--bind", "/", "/"),
        *("--dev-bind", "/dev", "/dev", "--proc", "/proc", "--"),
    ]


if __name__ == "__main__":
    main()
