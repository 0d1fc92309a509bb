"""One useful example call of each of Vel's tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.providers.scripts.base import Message, ScriptTurn, is_request, text_of
from tests.support.hang import HANG

Input = dict[str, Any]
Calls = Sequence[tuple[str, Input]]
CHILD, ASKING_CHILD = "Answer", "Ask"
MAIL = "{mail}"
"""A placeholder in inputs for the id of a mail with an attachment."""
DAY = {"start": "2026-11-23T00:00:00+01:00", "end": "2026-11-24T00:00:00+01:00"}
LETTER = {"to": ["bob@example.org"], "subject": "The report", "text": "It is ready."}
EVENT = {"event_id": "meeting1"}
AGENT = {"definition": "name: Mine\nslug: mine\nsystem_prompt: You count.\n"}
TODOS = {"todos": [{"content": "count", "status": "pending"}]}
NOTE = {"path": "knowledge/note.md", "content": "Ada counts.", "reason": "She said so."}
FILE = [("write_file", {"path": "a.txt", "content": "one\n"})]
SKILL = {"name": "beans"}
ROOM = "C000000001"
UPDATE = {"query": "UPDATE sales SET amount = 1", "params": {}}


@dataclass(frozen=True)
class Example:
    """One call of a tool.

    `before` are calls that prepare it in one turn; the input may use their results.
    """

    tool: str
    given: Input | Callable[[Sequence[str]], Input]
    before: Calls = ()
    profile: str = "full"
    shortened: bool = False
    """Whether the conversation of the run has been compacted."""


def _started(**more: Any) -> Callable[[Sequence[str]], Input]:
    return lambda results: {"id": json.loads(results[0])["id"], **more}


def _spawn(task: str) -> Calls:
    return [("spawn_subagent", {"task": task})]


_EXAMPLES = (
    Example("ls", {"path": "."}, FILE),
    Example("read_file", {"path": "a.txt"}, [("execute", {"command": "echo one > a.txt"})]),
    Example("glob", {"pattern": "*.txt"}, FILE),
    Example("grep", {"pattern": "one"}, FILE),
    Example("write_file", {"path": "b.txt", "content": "two\n"}),
    Example("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"}, FILE),
    Example("execute", {"command": "echo one > a.txt"}),
    Example("execute_python", {"code": "open('a.txt', 'w').write('one')"}),
    Example("execute_in_sandbox", {"command": "echo one > a.txt"}, profile="sandbox_only"),
    Example("write_todos", TODOS),
    Example("read_todos", {}, [("write_todos", TODOS)]),
    Example("list_skills", {}),
    Example("load_skill", SKILL),
    Example("deactivate_skill", SKILL, [("load_skill", SKILL)]),
    Example("write_memory", NOTE),
    Example("read_memory", {"path": "knowledge/note.md"}, [("write_memory", NOTE)]),
    Example("list_memory", {}),
    Example("search_transcript", {"query": "search_transcript"}, shortened=True),
    Example("task", {"subagent": "general", "task": CHILD}),
    Example("parallel_tasks", {"tasks": [{"subagent": "general", "task": CHILD}]}),
    Example("spawn_subagent", {"task": CHILD}),
    Example("spawn_parallel", {"tasks": [{"task": CHILD}]}),
    Example("wait_subagent", _started(timeout=HANG), _spawn(CHILD)),
    Example("cancel_subagent", _started(), _spawn(ASKING_CHILD)),
    Example("execute_sql", {"query": "SELECT * FROM sales"}),
    Example("get_schema", {}),
    Example("list_tables", {}),
    Example("describe_table", {"table": "sales"}),
    Example("list_slack_channels", {}),
    Example("send_slack_message", {"channel_id": ROOM, "text": "It is ready."}),
    Example("list_gmail_messages", {}),
    Example("list_gmail_labels", {}),
    Example("read_gmail_message", {"message_id": MAIL}),
    Example("read_gmail_thread", {"thread_id": MAIL}),
    Example("save_gmail_attachment", {"message_id": MAIL, "part": "1", "path": "plan.pdf"}),
    Example("create_gmail_draft", LETTER),
    Example("send_gmail_message", LETTER),
    Example("change_gmail_labels", {"message_ids": [MAIL], "remove": ["UNREAD"]}),
    Example("trash_gmail_messages", {"message_ids": [MAIL]}),
    Example("list_calendars", {}),
    Example("list_calendar_events", DAY),
    Example("read_calendar_event", EVENT),
    Example("find_busy_times", DAY),
    Example("create_calendar_event", {**DAY, "summary": "Planning"}),
    Example("update_calendar_event", {**EVENT, "etag": '"1"', "summary": "New"}),
    Example("delete_calendar_event", {"event_id": "meeting2", "etag": '"1"'}),
    Example("respond_to_calendar_event", {"event_id": "meeting3", "response": "accepted"}),
    Example("list_agent_parts", {}),
    Example("check_agent", AGENT),
    Example("create_agent", AGENT),
)
EXAMPLES = {f"Call {one.tool}.": one for one in _EXAMPLES}
"""Examples by the message that selects them."""
EXAMPLES["Call execute_sql to write."] = Example("execute_sql", UPDATE)


def plays(mail: str) -> Callable[[list[Message]], ScriptTurn]:
    """Write a script that plays the example which the user's message names."""

    def script(messages: list[Message]) -> ScriptTurn:
        start = max(place for place, one in enumerate(messages) if is_request(one))
        request, later = text_of(messages[start]), messages[start + 1 :]
        replies = sum(one["role"] == "assistant" for one in later)
        if request.endswith((CHILD, ASKING_CHILD)):
            asks = request.endswith(ASKING_CHILD) and not replies
            return ScriptTurn("", [("ls", {})]) if asks else ScriptTurn("It is so.")
        example = next(one for name, one in EXAMPLES.items() if request.startswith(name))
        if example.before and replies == 0:
            return ScriptTurn("", example.before)
        if replies > (1 if example.before else 0):
            return ScriptTurn("Done.")
        given = example.given(_results(later[-1])) if callable(example.given) else example.given
        return ScriptTurn("", [(example.tool, json.loads(json.dumps(given).replace(MAIL, mail)))])

    return script


def _results(message: Message) -> list[str]:
    return [str(block["content"]) for block in message["content"] if "content" in block]
