"""The demo task without a language model.

The next turn depends on the conversation, including tools' results. If a result is an error or
missing, the script stops and reports it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agents.demo.task import (
    CHECK_WITH_AWK,
    CHECK_WITH_SQL,
    DATA_PATH,
    DRAFT,
    OUTPUTS,
    DemoTask,
    program,
    task_in,
)
from agents.providers.base import Block
from agents.providers.scripts import demo_checks
from agents.providers.scripts.base import ENDED, Message, ScriptTurn, is_request, text_of
from agents.providers.scripts.demo_results import PROGRAM_SECONDS, Unexpected, results_of

SECONDS_A_TURN = 0.8
"""Seconds of a reply, so that a person can watch it."""

INTRODUCTION = (
    "I am the offline scripted model: I play a fixed script, and no language model is asked. "
    "The plan, the tools, the sandbox and the files are real, and so are the figures."
)
OTHERWISE = (
    "I am the offline scripted model; no language model is asked, so I cannot work on this. I can "
    "only run the demo: choose **Run the demo** on the home page, or enter `vel demo` in a "
    "terminal.\n\n"
    "To use a real model, store its key on the page **Provider keys**, or stop Vel, set "
    "ANTHROPIC_API_KEY, and start it again. The page *Install Vel* of the documentation names the "
    "variables for other models and for your own server. You said:\n\n"
)
STEPS = (
    "Look at the data",
    "Compute the figures",
    "Let two subagents check them",
    "Draw the chart",
    "Write the report",
    "Look over and publish it",
)
STEP_OF_ONE_CHECK = {"Let two subagents check them": "Let a subagent check them"}
_FIRST_TITLE = '    return "Rain and temperature in Seattle, month by month"\n'
_BETTER_TITLE = """\
    half = summary["wet_half"]
    months = f"{half['months'][0]} to {half['months'][-1]}"
    return f"{half['share_pct']:.0f} % of Seattle's rain falls from {months}"
"""
_DRAW = ("execute", {"command": "python3 chart.py", "timeout": PROGRAM_SECONDS})


def script(messages: list[Message]) -> ScriptTurn:
    """Return the demo's next turn, or for any other request a description of this model."""
    request, played = _request_and_replies(messages)
    task = task_in(request)
    checks = demo_checks.turns_for(request)
    if task is None and checks is None:
        return ScriptTurn(OTHERWISE + request)
    if played >= len(TURNS if checks is None else checks):
        return ScriptTurn(ENDED)
    try:
        results = results_of(messages[-1]) if played else []
        if checks is not None:
            turn = checks[played](results)
        else:
            assert task is not None
            turn = TURNS[played](results, task)
    except Unexpected as problem:
        return ScriptTurn(_gave_up(str(problem)))
    except (ArithmeticError, LookupError, TypeError, ValueError) as problem:
        # A person may have answered a call instead of the tool, with any text.
        return ScriptTurn(_gave_up(f"a result is not of the form it should have ({problem!r})"))
    return replace(turn, delay=SECONDS_A_TURN)


def _request_and_replies(messages: list[Message]) -> tuple[str, int]:
    """Return the last request, and the number of replies since."""
    played = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            played += 1
        elif is_request(message) or task_in(text_of(message)):
            # After a stopped run, the request is in one message with the run's last results.
            return text_of(message), played
    return "", played


def _gave_up(problem: str) -> str:
    return (
        f"I stop here, and the task is not done: {problem}\n\n"
        "The offline scripted model cannot find a way around this. `vel doctor` says whether this "
        "machine has a working sandbox. **Run the demo** on the home page, or `vel demo` in a "
        "terminal, starts the demo with its data in place."
    )


def _todos(done: int, task: DemoTask) -> tuple[str, Block]:
    """Return the plan with the first `done` steps completed and the next one in progress."""
    steps = STEPS if task.with_database else [STEP_OF_ONE_CHECK.get(each, each) for each in STEPS]
    statuses = ["completed"] * done + ["in_progress"] + ["pending"] * len(STEPS)
    todos = [
        {"content": step, "status": status} for step, status in zip(steps, statuses, strict=False)
    ]
    return "write_todos", {"todos": todos}


def _tables(task: DemoTask) -> list[tuple[str, Block]]:
    return [("list_tables", {})] if task.with_database else []


def _plan(results: list[Any], task: DemoTask) -> ScriptTurn:
    return ScriptTurn(
        f"{INTRODUCTION}\n\nFirst a plan, and a look at what was uploaded.",
        [
            _todos(0, task),
            ("ls", {"path": "/sandbox/user_uploads"}),
            *_tables(task),
            ("load_skill", {"name": "data-query"}),
        ],
    )


def _look(results: list[Any], task: DemoTask) -> ScriptTurn:
    if DATA_PATH not in [entry["path"] for entry in results[1]["entries"]]:
        raise Unexpected(f"{DATA_PATH} is not there")
    words = "The file is there. I read its beginning, and search it for empty fields."
    calls: list[tuple[str, Block]] = [
        ("read_file", {"path": DATA_PATH, "limit": 6}),
        ("grep", {"path": DATA_PATH, "pattern": ",(,|$)"}),
    ]
    if task.with_database:
        words = (
            "The file is there, and so is the database. I read the beginning of the one, search it "
            "for empty fields, and ask the other how much it has."
        )
        calls.append(("execute_sql", {"query": demo_checks.COUNT}))
    return ScriptTurn(f"[Using skill: data-query] {words}", calls)


def _compute(results: list[Any], task: DemoTask) -> ScriptTurn:
    head, empty, *counted = results
    days = head["total_lines"] - 1
    if task.with_database and f"{days}" not in counted[0]["table"]:
        raise Unexpected(f"the file has {days} days, and the database {counted[0]['table']}")
    means = "pandas" if task.with_toolbox else "Python"
    analysis = program("analyse_pandas.py" if task.with_toolbox else "analyse.py")
    where = " in both" if task.with_database else ""
    return ScriptTurn(
        f"{days:,} days{where}, and {empty['total_matches']} lines with an empty field. "
        f"Now the figures, with {means} in the sandbox.",
        [
            _todos(1, task),
            _python(analysis),
            _python(program("figures.py")),
        ],
    )


def _check(results: list[Any], task: DemoTask) -> ScriptTurn:
    found = json.loads(results[2]["stdout"])
    how = "a subagent computes it again, with awk, straight from the CSV."
    checks = [CHECK_WITH_AWK]
    if task.with_database:
        how = (
            "two subagents compute it again at the same time: one with awk, straight from the CSV, "
            "one with SQL from the database."
        )
        checks.append(CHECK_WITH_SQL)
    return ScriptTurn(
        f"{found['driest_month']} is the driest month with {found['driest_rain_mm']} mm, "
        f"{found['wettest_month']} the wettest with {found['wettest_rain_mm']} mm. Before I use "
        f"that, {how}",
        [
            _todos(2, task),
            (
                "parallel_tasks",
                {"tasks": [{"subagent": "general", "task": check} for check in checks]},
            ),
        ],
    )


def _draw(results: list[Any], task: DemoTask) -> ScriptTurn:
    checks = [item.get("result", item.get("error", "")) for item in results[1]["results"]]
    if not all(", 0 differ" in check for check in checks):
        raise Unexpected(f"the checks do not agree: {' / '.join(checks)}")
    words = f"It agrees. awk: {demo_checks.outcome(checks[0])}. Now the chart."
    if task.with_database:
        words = (
            f"Both agree. awk: {demo_checks.outcome(checks[0])}; SQL: "
            f"{demo_checks.outcome(checks[1])}. Now the chart."
        )
    return ScriptTurn(
        words,
        [
            _todos(3, task),
            ("write_file", {"path": "chart.py", "content": program("chart.py")}),
            _DRAW,
        ],
    )


def _retitle(results: list[Any], task: DemoTask) -> ScriptTurn:
    edit = {"path": "chart.py", "old_text": _FIRST_TITLE, "new_text": _BETTER_TITLE}
    words = (
        "Its title only names the subject. A title should say the finding, with the figure from "
        "the results, so I change that and draw again."
    )
    calls: list[tuple[str, Block]] = [("edit_file", edit), _DRAW]
    if task.with_toolbox:
        words += " The single months of each year become a heat map, with matplotlib."
        calls.append(_python(program("heatmap.py")))
    return ScriptTurn(words, calls)


def _python(code: str) -> tuple[str, Block]:
    return "execute_python", {"code": code, "timeout": PROGRAM_SECONDS}


def _report(results: list[Any], task: DemoTask) -> ScriptTurn:
    return ScriptTurn(
        f"{'The pictures are' if task.with_toolbox else 'The chart is'} done. The report takes "
        "every number from the computed results.",
        [_todos(4, task), _python(program("report.py"))],
    )


def _look_over(results: list[Any], task: DemoTask) -> ScriptTurn:
    return ScriptTurn(
        "I look the results over: are all files there, is a value missing in them? And I read the "
        "draft once more.",
        [
            _todos(5, task),
            ("ls", {"path": OUTPUTS}),
            ("grep", {"path": DRAFT, "pattern": r"\b(nan|None|inf)\b"}),
            ("read_file", {"path": DRAFT, "limit": 1_000}),
        ],
    )


def _publish(results: list[Any], task: DemoTask) -> ScriptTurn:
    _, listing, gaps, draft = results
    sizes = {entry["name"]: entry.get("size", 0) for entry in listing["entries"]}
    pictures = [name for name in task.outputs if name != "report.md"]
    if missing := [name for name in pictures if not sizes.get(name)]:
        raise Unexpected(f"{' and '.join(missing)} was not created")
    if gaps["total_matches"]:
        raise Unexpected(f"a number is missing: {gaps['matches'][0]['content']}")
    if draft["has_more"] or "note" in draft:
        raise Unexpected("the draft is too long to be published as it is")
    text = "\n".join(line.partition(" | ")[2] for line in draft["content"].splitlines())
    return ScriptTurn(
        "All there: "
        + ", ".join(f"{name} ({sizes[name]:,} bytes)" for name in pictures)
        + ". Publishing the report waits for a person.",
        [("write_file", {"path": f"{OUTPUTS}/report.md", "content": f"{text}\n"})],
    )


def _tick_off(results: list[Any], task: DemoTask) -> ScriptTurn:
    return ScriptTurn(
        "It is published. I read the findings for my answer.",
        [_todos(6, task), ("read_file", {"path": f"{OUTPUTS}/report.md", "limit": 16})],
    )


def _answer(results: list[Any], task: DemoTask) -> ScriptTurn:
    lines = [line.partition(" | ")[2] for line in results[1]["content"].splitlines()]
    findings = [line for line in lines if line.startswith("- **")]
    if not findings:
        raise Unexpected("the report has no findings")
    files = [f"- {OUTPUTS}/{name}" for name in task.outputs]
    return ScriptTurn(
        "\n".join(["Done. When Seattle is dry:", "", *findings, "", "The files:", "", *files])
        + "\n\nThis was the offline scripted model. With ANTHROPIC_API_KEY set, Claude does the "
        "same task."
    )


TURNS: tuple[Callable[[list[Any], DemoTask], ScriptTurn], ...] = (
    _plan,
    _look,
    _compute,
    _check,
    _draw,
    _retitle,
    _report,
    _look_over,
    _publish,
    _tick_off,
    _answer,
)
