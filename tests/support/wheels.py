"""Tiny wheels that tests build themselves, so that no package index is needed."""

from __future__ import annotations

import zipfile
from pathlib import Path

NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": ""}
"""The environment of a pip that uses no index."""


def make_wheel(
    directory: Path,
    name: str = "tiny",
    files: dict[str, str] | None = None,
    *,
    distribution: str = "",
    script: str = "",
) -> Path:
    """Build a wheel of version 1.0. `files` are modules, `script` a command that prints its name.

    `distribution` is the name in the metadata if it differs from that of the file.
    """
    info = f"{name}-1.0.dist-info"
    content = files if files is not None else {f"{name}/__init__.py": "ANSWER = 42\n"}
    content = {
        **content,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {distribution or name}\nVersion: 1.0\n"
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{script} = {name}:main\n"
    record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return wheel
