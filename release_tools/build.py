"""The files of a release: packages, software bill of materials (SBOM), licences, checksums."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from release_tools.source import ReleaseError, Source, export

CHECKSUMS = "SHA256SUMS"


def build(checkout: Path, source: Source, output: Path, licences_of: Path | None = None) -> None:
    """Build a release into `output`, and replace the files of earlier ones there.

    Two builds of one commit are identical, byte for byte, in any directory, with any umask, at
    any time. The licence report also depends on the packages in the environment of `licences_of`.

    Args:
        checkout: The working tree of a Git repository.
        source: Its commit.
        output: A directory, which is created.
        licences_of: The Python of an environment with the packages of requirements/run.txt. None:
            no licence report.

    Raises:
        ReleaseError: A step failed. `output` is unchanged.
        OSError: A file cannot be written. `output` may be incomplete.
    """
    with tempfile.TemporaryDirectory(prefix="vel-release-") as name:
        tree, made = Path(name, "tree"), Path(name, "made")
        tree.mkdir()
        made.mkdir()
        export(checkout, source, tree)
        _run(source, tree, "hatchling", "build", "--directory", str(made))
        _write_sbom(source, tree, made / f"vel-{source.version}.cdx.json")
        if licences_of is not None:
            _write_licences(source, tree, licences_of, made / f"vel-{source.version}.licences.json")
        _write_checksums(made)
        output.mkdir(parents=True, exist_ok=True)
        for old in (*output.glob("vel-*"), *output.glob(CHECKSUMS)):
            old.unlink()
        for file in sorted(made.iterdir()):
            (output / file.name).write_bytes(file.read_bytes())


def _write_sbom(source: Source, tree: Path, path: Path) -> None:
    """Describe Vel and its pinned packages in the format CycloneDX."""
    _run(
        source,
        tree,
        *("cyclonedx_py", "requirements", "requirements/run.txt"),
        *("--pyproject", "pyproject.toml", "--mc-type", "application"),
        *("--output-reproducible", "--output-format", "JSON", "--output-file", str(path)),
    )


def pinned_packages(requirements: str) -> list[str]:
    """Return the names of packages in `requirements`, the text of a file of `uv pip compile`."""
    return re.findall(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==", requirements, flags=re.MULTILINE)


def _write_licences(source: Source, tree: Path, python: Path, path: Path) -> None:
    names = pinned_packages((tree / "requirements/run.txt").read_text())
    text = _run(
        source,
        tree,
        *("piplicenses", "--python", str(python), "--format", "json", "--with-urls"),
        *("--packages", *names),
    )
    found = sorted(json.loads(text), key=lambda one: one["Name"].lower())
    if not found:
        raise ReleaseError(
            f"{python} does not have the packages of requirements/run.txt. Run `make release`."
        )
    path.write_text(json.dumps(found, indent=2) + "\n")


def _write_checksums(directory: Path) -> None:
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(directory.iterdir())
    ]
    (directory / CHECKSUMS).write_text("".join(lines))


def _run(source: Source, tree: Path, module: str, *words: str) -> str:
    """Run a tool of requirements/release.txt in the exported tree, and return its output."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", module, *words],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(source.time), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise ReleaseError(f"{module} failed: {lines[-1] if lines else done.returncode}")
    return done.stdout
