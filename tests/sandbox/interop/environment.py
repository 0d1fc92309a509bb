"""A virtual environment for deepagents and its test suites, separate from the project's."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().with_name("requirements.txt")
INSTALL_SECONDS = 600


class PackagesMissing(Exception):
    """The packages are not available here; the message says why, in one line."""


def interop_python() -> Path:
    """Return the interpreter of the environment for REQUIREMENTS, which is created if missing.

    Raises `PackagesMissing`, for example without a network.
    """
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = _cache_directory() / f"deepagents-py{version}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may need it at the same time
        if not (place / "complete").exists():
            _install(place)
    return place / "bin/python"


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "vel-interop"


def _install(place: Path) -> None:
    """Install with uv if the environment of these tests has it, otherwise with pip.

    uv needs a tenth of pip's time. Only pip knows an index from pip's settings.
    """
    if importlib.util.find_spec("uv"):
        try:
            return _install_with_uv(place)
        except PackagesMissing as missing:
            print(f"uv: {missing}; trying pip")
    _install_with_pip(place)


# The file pins all packages, so there is nothing to resolve.
_PACKAGES = ("--quiet", "--no-deps", "-r", str(REQUIREMENTS))


def _install_with_uv(place: Path) -> None:
    uv = (sys.executable, "-m", "uv")
    _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place)])
    _run([*uv, "pip", "install", "--python", str(place / "bin/python"), *_PACKAGES])
    (place / "complete").touch()


def _install_with_pip(place: Path) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(place)])
    quickly = ["--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"]
    _run([str(place / "bin/python"), "-m", "pip", "install", *quickly, *_PACKAGES])
    (place / "complete").touch()


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PackagesMissing(
            f"not installed within {INSTALL_SECONDS} s; is there a package index?"
        ) from None
    if done.returncode:
        lines = done.stderr.splitlines()
        errors = [line for line in lines if line.lower().startswith("error")]
        raise PackagesMissing((errors or lines or ["the installer printed nothing"])[-1])
