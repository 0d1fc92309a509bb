"""Create the virtual environment of a peer, or explain why it is missing."""

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
    """Raised if a peer cannot be measured. The message gives the reason in one line."""


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "vel-benchmarks"


def peer_python(name: str) -> Path:
    """Return the Python of the environment for `peers/NAME.txt`. Create the environment if missing.

    Raises `PeerMissing` if the peer cannot be installed, for example without a network.
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
            # Installing pip into the environment would take longer than installing most peers.
            venv.append("--without-pip")
            pip = [sys.executable, "-m", "pip", "--python", str(python)]
        _run(name, [*venv, str(place)])
        # The file pins all dependencies, so pip need not resolve any.
        quickly = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
        _run(
            name,
            [*pip, "install", *quickly, "--timeout", "15", "--no-deps", "-r", str(requirements)],
        )
        (place / "complete").touch()
    return python


def peer_version(name: str) -> str:
    """Return the pinned version."""
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
