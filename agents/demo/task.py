"""The task of the demo, and the paths of its files in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

DATA_NAME = "seattle-weather.csv"
DATA_PATH = f"/sandbox/user_uploads/{DATA_NAME}"
DATABASE_NAME = "seattle_weather"
DATABASE_FILE = "seattle-weather.sqlite"
FIGURES = "/sandbox/shared/figures.csv"
DRAFT = "/sandbox/shared/drafts/report.md"
OUTPUTS = "/sandbox/outputs"
TOOLBOX = "demo"
TOOLBOX_PACKAGES = ("pandas", "matplotlib")

SYSTEM_PROMPT = """\
You are a careful data analyst. You answer questions about data with figures that you computed in \
the sandbox, never from memory.

- Look at the raw data first: its columns, units, gaps and oddities.
- Before you use a figure, compute it a second, independent way.
- Say what the data cannot show. Few observations are a caveat, not a trend.
- Take every number in a report from the computed results by code, and round it for the reader.
- A chart has a title that says the finding, named axes with units, and text that can be read; an \
SVG also has a <title> and a <desc> for those who cannot see it."""

_DATABASE = f" The database {DATABASE_NAME} has the same days in a table."
_QUESTION = f"""\
{DATA_PATH} holds the weather of Seattle, one row a day for 2012 to 2015: date, precipitation \
(mm), temp_max and temp_min (°C), wind (m/s) and weather (one word for the day).{_DATABASE}

When is Seattle dry, and how far can one rely on it? Find out

- how rain and temperature run through the year, month by month, and how much the four years differ;
- how the rain is spread over the days: wet days, long dry and wet spells, what today says about \
tomorrow;
- whether the word in the column `weather` agrees with what was measured.
"""
_CHART = (
    f"- {OUTPUTS}/chart.svg: one labelled chart of the months, drawn without a plotting library;"
)
_REPORT = f"""\
- {OUTPUTS}/report.md: the findings first, then tables, what to be careful about, and how it was \
made, with"""


@dataclass(frozen=True)
class DemoTask:
    """The task. `outputs` are the names of the files that a completed run has left in `OUTPUTS`."""

    text: str
    outputs: tuple[str, ...]
    with_toolbox: bool
    with_database: bool = True

    def without_database(self) -> DemoTask:
        """Return the task for an agent without a database: one subagent checks the figures."""
        text = self.text.replace(_DATABASE, "").replace(_CHECKS, _ONE_CHECK)
        return replace(self, text=text, with_database=False)


_CHECKS = """\
Let two subagents check the figures at the same time, one with awk and one with SQL."""
_ONE_CHECK = "Let a subagent check the figures with awk."
PLAIN = DemoTask(
    text=f"""\
{_QUESTION}
Compute with Python in the sandbox (standard library only). {_CHECKS} Then leave two files:

{_CHART}
{_REPORT} the chart embedded. Draft it in /sandbox/shared/drafts/; a person reads it before it \
is published.""",
    outputs=("report.md", "chart.svg"),
    with_toolbox=False,
)
WITH_TOOLBOX = DemoTask(
    text=f"""\
{_QUESTION}
Compute with pandas in the sandbox. {_CHECKS} Then leave three files:

{_CHART}
- {OUTPUTS}/rain.png: the rain of each month in each year as a heat map, drawn with matplotlib;
{_REPORT} both pictures embedded. Draft it in /sandbox/shared/drafts/; a person reads it before \
it is published.""",
    outputs=("report.md", "chart.svg", "rain.png"),
    with_toolbox=True,
)
CHECK_WITH_AWK = f"""\
Check the figures in {FIGURES} (key, value) a second way, with awk, straight from {DATA_PATH}. \
Return how many you compared and how many differ."""
CHECK_WITH_SQL = f"""\
Check the figures "month … rain_mm" in {FIGURES} (key, value) with SQL: the mean rain of each \
month, from the database {DATABASE_NAME}. Return how many you compared and how many differ."""
PUBLISHING: tuple[dict[str, object], ...] = (
    {
        "tool": "write_file",
        "when": {"path": f"{OUTPUTS}/*.md"},
        "action": "ask",
        "reason": "A report is read by a person before it is published.",
    },
)
"""The rules of the demo's agent."""
TASKS = tuple(each for task in (PLAIN, WITH_TOOLBOX) for each in (task, task.without_database()))


def task_in(message: str) -> DemoTask | None:
    """Return the task that a message asks for, independent of its line breaks."""
    said = " ".join(message.split())
    return next((task for task in TASKS if " ".join(task.text.split()) in said), None)


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
    """Return the daily records as CSV. `data/README.md` names their source and licence."""
    return files("agents.demo").joinpath("data", DATA_NAME).read_bytes()


def database_path() -> Path:
    """Return the same records as a SQLite file, which is opened only for reading."""
    return Path(str(files("agents.demo").joinpath("data", DATABASE_FILE)))


def program(name: Program) -> str:
    """Return the text of a program that the offline script runs in the sandbox, never here."""
    return files("agents.demo").joinpath("programs", name).read_text(encoding="utf-8")
