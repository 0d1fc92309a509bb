"""Making a peer's virtual environment, or saying why there is none."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALL_SECONDS = 900


class PeerMissing(Exception):
    """A peer cannot be measured; the message says why, in one line."""


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "vel-benchmarks"


def peer_python(name: str) -> Path:
    """The interpreter of `peers/NAME.txt`'s environment, made now if it is not there.

    Raises `PeerMissing` when it cannot be installed, such as without a network.
    """
    requirements = HERE / f"{name}.txt"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    place = cache_directory() / f"{name}-py{version}-{digest}"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        print(f"installing {name} into {place} …", file=sys.stderr, flush=True)
        venv, pip = [sys.executable, "-m", "venv"], [str(python), "-m", "pip"]
        if importlib.util.find_spec("pip"):
            # A pip of its own takes longer to install than most peers.
            venv.append("--without-pip")
            pip = [sys.executable, "-m", "pip", "--python", str(python)]
        _run(name, [*venv, str(place)])
        # Everything is pinned in the file; nothing is to be resolved.
        quickly = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
        _run(
            name,
            [*pip, "install", *quickly, "--timeout", "15", "--no-deps", "-r", str(requirements)],
        )
        (place / "complete").touch()
    return python


def peer_version(name: str) -> str:
    """The version that is pinned."""
    for line in (HERE / f"{name}.txt").read_text().splitlines():
        package, _, version = line.partition("==")
        if package == name:
            return version
    raise ValueError(f"peers/{name}.txt does not pin {name}")


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PeerMissing(
            f"{name} was not installed within {INSTALL_SECONDS} s; is there a package index?"
        ) from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        said = (errors or done.stderr.splitlines() or ["no word why"])[-1]
        raise PeerMissing(f"{name} could not be installed: {said.removeprefix('ERROR: ')}")
