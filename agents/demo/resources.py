"""The files that come with the demo, also from an installed wheel."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

from agents.demo.task import DATA_NAME, DATABASE_FILE

Program = Literal[
    "analyse.py",
    "analyse_pandas.py",
    "chart.py",
    "check.sh",
    "figures.py",
    "heatmap.py",
    "report.py",
]


def data_bytes() -> bytes:
    """The daily records as CSV; `data/README.md` names their source and licence."""
    return files("agents.demo").joinpath("data", DATA_NAME).read_bytes()


def database_path() -> Path:
    """The same records as a SQLite file, which is only ever opened for reading."""
    return Path(str(files("agents.demo").joinpath("data", DATABASE_FILE)))


def program(name: Program) -> str:
    """The text of a program that the offline script runs in the sandbox. It never runs here."""
    return files("agents.demo").joinpath("programs", name).read_text(encoding="utf-8")
