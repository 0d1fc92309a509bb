"""The page Settings of an agent: people with the right to change it edit its definition."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from agents.agent_files.shape import file_fields
from agents.features.agent_editor.form import FIXED, sections
from agents.features.agent_editor.schema_examples import EXAMPLES
from agents.features.databases.models import DatabaseConnection
from agents.features.mcp_client.models import McpServer
from agents.middleware.registry import known_tool_names
from agents.models import Agent, AuditEntry, Run
from agents.secret_text import SecretText
from agents.services.agent_definitions.definitions import change_definition
from agents.services.agent_definitions.files import export_agent
from skills_app.library.scopes import agent_scope
from tests.agents.admin.rows import call
from tests.agents.api.rows import make_agent, make_run
from tests.agents.features.agent_editor.conftest import SignIn
from tests.support.forms import Data, form_data
from tests.support.skills import package, store_skill

URL = "/agents/writer/settings/"
HOSTILE = "<script>alert(1)</script>\u202e"
RICH: dict[str, Any] = {
    "description": "Two lines\nof text \u202e",
    "system_prompt": "\nYou write {{date}}.\n\n  Indented. \\u{202e}\n",
    "max_turns": 12,
    "max_tokens": 5_000,
    "max_cost": 1.25,
    "tools": ["*", "ls", "execute"],
    "interrupt_on": {
        "execute": True,
        "ls": False,
        "edit_file": {"allowed_decisions": ["approve", "reject"], "expiry": 60},
    },
    "approval_rules": [
        {"tool": "execute", "when": {"command": "rm .*", "larger_than": 5}, "action": "deny"},
        {
            "tool": "write_*",
            "action": "ask",
            "ask": {"approvals_needed": 2, "self_approval": False},
        },
        {"tool": "ls", "action": "allow", "reason": "It reads.\u200b"},
    ],
    "network": "allowlist",
    "allowed_hosts": ["pypi.org", "[::1]:80", "*.example.org:8443"],
    "fallbacks": [{"provider": "anthropic", "model": "claude-haiku-4-5"}],
    "tool_retries": [{"tool": "ls", "attempts": 3, "backoff": 0.5}],
    "output_schema": {"type": "object", "properties": {"total": {"type": "number"}}},
    "subagents": [
        {
            "name": "counter",
            "description": "Counts.",
            "system_prompt": "Count.\nTwice.",
            "tools": [],
        },
        {"name": "reader", "description": "Reads.", "tools": ["ls"], "max_cost": 0.5},
        {"name": "third", "description": "Has the tools of its agent."},
    ],
}
"""A definition with a value for each kind of field."""


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    """olga, who owns the agent and has no permission."""
    return sign_in("olga")


@pytest.fixture
def root(sign_in: SignIn) -> Client:
    return sign_in("root", superuser=True)


@pytest.fixture
def agent(olga: Client) -> Agent:
    owner = User.objects.get(username="olga")
    return make_agent(owner=owner, everyone=False, system_prompt="You write.\u202e", network="full")


@pytest.fixture
def rich(agent: Agent, root: Client) -> Agent:
    by = User.objects.get(username="root")
    return change_definition(agent.pk, RICH, by=by, known_tools=known_tool_names())


def allow(name: str, *codenames: str) -> None:
    permissions = Permission.objects.filter(codename__in=codenames)
    User.objects.get(username=name).user_permissions.add(*permissions)


def page_of(client: Client, section: str = "agent") -> str:
    return client.get(URL, {"section": section}).content.decode()


def typed(client: Client, section: str = "agent", **changed: Any) -> Data:
    """Return the form of a section as a browser sends it, with changed fields."""
    data = form_data(page_of(client, section), "definition")
    return {**data, "action": ["save"], **{k.replace("__", "-"): v for k, v in changed.items()}}


def make_server(slug: str, **fields: Any) -> McpServer:
    return McpServer.objects.create(slug=slug, command="x", secrets=SecretText.seal(""), **fields)


def errors_in(answer: Any) -> list[str]:
    """Return the messages and errors of a page."""
    return errors_in_page(answer.content.decode())


def errors_in_page(page: str) -> list[str]:
    return re.findall(r'(?s)class="(?:note[^"]*|editor-error)"[^>]*>(.*?)</p>', page)


def stored(agent: Agent) -> Agent:
    return Agent.objects.get(pk=agent.pk)


def file_of(agent: Agent) -> str:
    return export_agent(stored(agent), by=agent.owner)


def test_the_form_has_each_field_of_the_file() -> None:
    named = [name for _, names in sections().values() for name in names]
    assert sorted([*named, *FIXED]) == sorted(file_fields())


def test_the_owner_changes_a_field_as_one_version_with_a_note(olga: Client, agent: Agent) -> None:
    data = typed(olga, "prompt", note=["Rhymes <b>now</b>\u202e"])
    assert data["system_prompt"] == ["You write.\\u{202e}"]
    data["system_prompt"] = ["You write.\\u{202e}\r\nYou rhyme."]

    answer = olga.post(URL, data)

    assert (answer.status_code, answer["Location"]) == (302, f"{URL}?section=prompt")
    found = stored(agent)
    assert found.system_prompt == "You write.\u202e\nYou rhyme."
    assert (found.version, found.network, found.everyone) == (2, "full", False)
    entry = AuditEntry.objects.get(action="agent.changed")
    assert (entry.actor, entry.door) == ("olga", "web")
    page = page_of(olga, "versions")
    assert "Rhymes &lt;b&gt;now&lt;/b&gt;⟨U+202E⟩" in page
    assert "You rhyme." in page


def test_an_unchanged_form_of_a_rich_agent_changes_nothing(root: Client, rich: Agent) -> None:
    before = file_of(rich)
    data = form_data(page_of(root), "definition", with_disabled=True)
    assert len(data["edited"]) == len(file_fields()) - len(FIXED)
    answer = root.post(URL, {**data, "action": "save"}, follow=True)
    assert "Nothing has changed." in answer.content.decode(), errors_in(answer)
    assert (stored(rich).version, file_of(rich)) == (rich.version, before)


def test_each_field_of_a_new_definition_can_be_typed_without_scripts(
    root: Client, rich: Agent
) -> None:
    before = file_of(rich)
    empty = make_agent("other", owner=rich.owner, everyone=False)
    url = URL.replace("writer", "other")
    data = form_data(page_of(root), "definition", with_disabled=True)
    own = form_data(root.get(url).content.decode(), "definition")
    sent = {**data, "tag": own["tag"], "seen": own["seen"], "name": ["Other"], "action": ["save"]}
    answer = root.post(url, sent)
    assert answer.status_code == 302, errors_in(answer)
    after = export_agent(stored(empty), by=rich.owner)
    expected = before.replace("slug: writer", "slug: other").replace("name: Writer", "name: Other")
    assert after == expected


def test_the_form_sends_only_the_open_section(root: Client, rich: Agent) -> None:
    assert typed(root, "memory")["edited"] == ["memory_saving", "memory_requests"]


def test_rows_are_added_moved_and_removed_without_scripts(root: Client, rich: Agent) -> None:
    data = typed(root, "approval")
    prefix = "approval_rules-"
    assert data[f"{prefix}rows"] == ["4"]
    data |= {
        f"{prefix}0-remove": ["on"],
        f"{prefix}2-position": ["0.5"],
        f"{prefix}3-tool": ["read_file"],
        f"{prefix}3-action": ["deny"],
        f"{prefix}3-when-path": ["*.key"],
        f"{prefix}3-reason": ["Keys."],
    }
    assert root.post(URL, data).status_code == 302
    rules = stored(rich).approval_rules
    assert [rule.tool if hasattr(rule, "tool") else rule["tool"] for rule in rules] == [
        "ls",
        "write_*",
        "read_file",
    ]


def test_a_change_in_between_keeps_the_input_and_shows_the_change(
    olga: Client, agent: Agent
) -> None:
    late = typed(olga, "prompt", system_prompt=["Late"])
    olga.post(URL, typed(olga, "prompt", system_prompt=["First"]))
    for _ in range(2):
        answer = olga.post(URL, late)
        page = answer.content.decode()
        assert answer.status_code == 409
        assert "Somebody else has changed the agent" in page
        again = form_data(page, "definition")
        assert again["system_prompt"] == ["Late"]
        assert "First" in page
        assert stored(agent).system_prompt == "First"
        late = {**again, "action": ["save"]}
    assert olga.post(URL, {**again, "action": ["overwrite"]}).status_code == 302
    assert stored(agent).system_prompt == "Late"


def test_a_change_after_the_shown_conflict_is_not_overwritten_either(
    olga: Client, agent: Agent
) -> None:
    late = typed(olga, "prompt", system_prompt=["Late"])
    olga.post(URL, typed(olga, "prompt", system_prompt=["First"]))
    conflict = form_data(olga.post(URL, late).content.decode(), "definition")
    olga.post(URL, typed(olga, "prompt", system_prompt=["Second"]))
    assert olga.post(URL, {**conflict, "action": ["overwrite"]}).status_code == 409
    assert stored(agent).system_prompt == "Second"


def test_only_own_changes_are_published_over_the_changes_of_others(
    root: Client, rich: Agent
) -> None:
    """Also of fields in the same tab, and of those that are no part of a version."""
    tabs = ("agent", "limits-of-a-run")
    mine = {**typed(root, tabs[0]), **typed(root, tabs[1], max_turns=["5"])}
    mine |= {"edited": [name for tab in tabs for name in typed(root, tab)["edited"]]}
    root.post(URL, typed(root, "limits-of-a-run", max_tokens=["700"]))
    root.post(URL, typed(root, "agent", description=["Theirs"]))

    answer = root.post(URL, mine)
    page = answer.content.decode()
    again = form_data(page, "definition")

    assert answer.status_code == 409
    assert "also changed fields of yours" not in page
    assert (again["max_turns"], again["max_tokens"]) == (["5"], ["700"])
    # A third change, after the page of the conflict.
    root.post(URL, typed(root, "limits-of-a-run", max_cost=["0.25"]))
    last = form_data(
        root.post(URL, {**again, "action": ["overwrite"]}).content.decode(), "definition"
    )
    assert root.post(URL, {**last, "action": ["overwrite"]}).status_code == 302
    found = stored(rich)
    assert (found.max_turns, found.max_tokens, float(found.max_cost)) == (5, 700, 0.25)
    assert found.description == "Theirs"


def test_a_conflict_names_the_fields_that_both_have_changed(root: Client, rich: Agent) -> None:
    late = typed(root, "limits-of-a-run", max_turns=["5"], max_tokens=["600"])
    root.post(URL, typed(root, "limits-of-a-run", max_turns=["6"]))
    answer = root.post(URL, late)
    assert answer.context["clashes"] == ["Max turns"]
    assert "also changed fields of yours: <strong>Max turns</strong>" in answer.content.decode()


def test_input_with_an_error_does_not_hide_a_conflict(root: Client, rich: Agent) -> None:
    late = typed(root, "limits-of-a-run", max_turns=["0"])
    root.post(URL, typed(root, "limits-of-a-run", max_tokens=["700"]))
    wrong = root.post(URL, late)
    assert wrong.status_code == 400
    again = {**form_data(wrong.content.decode(), "definition"), "max_turns": ["5"]}
    conflict = root.post(URL, {**again, "action": ["save"]})
    assert conflict.status_code == 409
    data = form_data(conflict.content.decode(), "definition")
    assert (data["max_turns"], data["max_tokens"]) == (["5"], ["700"])
    assert stored(rich).max_tokens == 700


@pytest.mark.parametrize("seen", ["", "x", "of another agent"])
def test_only_the_agents_own_page_says_what_the_form_had(
    root: Client, rich: Agent, seen: str
) -> None:
    if seen == "of another agent":
        make_agent("other", owner=rich.owner)
        other = root.get(URL.replace("writer", "other")).content.decode()
        seen = form_data(other, "definition")["seen"][0]
    answer = root.post(URL, typed(root, name=["New"], seen=[seen]))
    assert answer.status_code == 400
    assert errors_in(answer) == ["The form is not complete: open the page again."]
    assert stored(rich).name == "Writer"


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("section", "changed", "words"),
    [
        ("agent", {"name": [""]}, "at least 1 character"),
        ("tools", {"tools-mode": ["some"], "tools-pick": ["exceute"]}, "did you mean execute?"),
        ("limits-of-a-run", {"max_turns": ["0"]}, "greater than or equal to 1"),
        ("limits-of-a-run", {"max_turns": ["many"]}, "whole number"),
        (
            "approval",
            {"approval_rules-3-tool": ["x"], "approval_rules-3-action": ["permit"]},
            "rule 4, action",
        ),
        (
            "approval",
            {"approval_rules-0-when-larger_than": ["a lot"]},
            "rule 1, when.larger_than",
        ),
        ("approval", {"approval_rules-0-when-command": ["("]}, "rule 1, when.command"),
        ("approval", {"interrupt_on-3-tool": ["ls"]}, "ls is named twice"),
        ("approval", {"interrupt_on-3-tool": [HOSTILE]}, "&lt;script&gt;"),
        ("model", {"fallbacks-0-provider": ["nobody"]}, "nobody"),
        ("sandbox-and-network", {"allowed_hosts": ["pypi.org\r\na b"]}, "a b"),
        ("form-of-answers", {"output_schema": ["{"]}, "not JSON"),
        ("prompt", {"system_prompt": ["{{user.nmae}}"]}, "user.nmae"),
        ("subagents", {"subagents-0-name": ["UPPER"]}, "subagents"),
        ("agent", {"note": ["x" * 501]}, "note:"),
        ("agent", {"name": ["a\x00b"]}, "Null characters"),
    ],
)
def test_an_error_is_at_its_field_and_the_input_stays(
    root: Client, rich: Agent, section: str, changed: Data, words: str
) -> None:
    data = {**typed(root, section), **changed}
    answer = root.post(URL, data)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert words in page
    assert "<script>alert" not in page
    again = form_data(page, "definition")
    for name, value in changed.items():
        if "\x00" not in value[0] and "\u202e" not in value[0]:
            assert again.get(name) == value, name
    assert stored(rich).version == rich.version


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("approval_rules", {"approval_rules-rows": ["9" * 5_000]}),
        ("approval_rules", {"approval_rules-rows": ["1000000"]}),
        ("approval_rules", {"approval_rules-0-position": ["nan"]}),
        ("approval_rules", {"approval_rules-0-position": ["9" * 5_000]}),
        ("approval_rules", {"approval_rules-0-when-larger_than": ["9" * 5_000]}),
        ("approval_rules", {"approval_rules-1-ask-approvals_needed": ["9" * 5_000]}),
        ("approval_rules", {"approval_rules-0-tool": ["a\x00b"]}),
        ("approval_rules", {"approval_rules": ["[" * 5_000]}),
        ("approval_rules", {"approval_rules": ['[{"a":' * 400 + "1" + "}]" * 400]}),
        ("approval_rules", {"approval_rules": ["[" + '{"when":' * 800 + "1" + "}" * 800 + "]"]}),
        ("interrupt_on", {"interrupt_on": ["7"]}),
        ("interrupt_on", {"interrupt_on": ['[["ls", true]]']}),
        ("tools", {"tools": ['{"a": 1}']}),
        ("tools", {"tools": ["[[1], {}]"]}),
        ("tools", {"tools-mode": ["other"], "tools-pick": ["*", "*"]}),
        ("mcp_servers", {"mcp_servers": ["5"]}),
        ("mcp_servers", {"mcp_servers": ['{"a": 1}']}),
        ("mcp_servers", {"mcp_servers-servers": ["nosuch"], "mcp_servers-mode-nosuch": ["all"]}),
        ("allowed_hosts", {"allowed_hosts": ["[1, {}]"]}),
        ("output_schema", {"output_schema": ["[" * 5_000]}),
    ],
)
def test_a_crafted_value_is_refused_or_ignored(
    root: Client, rich: Agent, field: str, changed: Data
) -> None:
    before = file_of(rich)
    page = form_data(page_of(root), "definition", with_disabled=True)
    data = {**page, "edited": [field], "action": ["save"], **changed}
    answer = root.post(URL, data, follow=True)
    assert answer.status_code in (200, 400)
    assert file_of(rich) == before


def test_a_field_that_needs_another_permission_is_only_shown(olga: Client, agent: Agent) -> None:
    page = page_of(olga, "approval")
    assert "agents.configure_approval" in page
    assert "approval_rules-rows" not in page
    allow("olga", "configure_approval")
    assert "approval_rules-rows" in page_of(olga, "approval")


@pytest.mark.parametrize(
    ("forged", "needed"),
    [
        ({"edited": ["interrupt_on"], "interrupt_on": ['{"execute": false}']}, "approval"),
        ({"edited": ["everyone"], "everyone": ["on"]}, "share_agent"),
        ({"edited": ["groups"], "groups": ["staff"]}, "share_agent"),
        ({"edited": ["databases"], "databases": ["shop"]}, "configure_database"),
        ({"edited": ["mcp_servers"], "mcp_servers": ['["files"]']}, "configure_mcpserver"),
        ({"edited": ["network"], "network": ["none"]}, "configure_sandbox"),
        # The answer does not tell which names exist.
        ({"edited": ["databases"], "databases": ["nosuch"]}, "configure_database"),
        ({"edited": ["groups"], "groups": ["nosuch"]}, "share_agent"),
        ({"edited": ["mcp_servers"], "mcp_servers": ['["nosuch"]']}, "configure_mcpserver"),
    ],
)
def test_a_forged_field_is_refused(olga: Client, agent: Agent, forged: Data, needed: str) -> None:
    Group.objects.create(name="staff")
    url = SecretText.seal("sqlite:////srv/shop.sqlite3")
    DatabaseConnection.objects.create(name="shop", dialect="sqlite", url=url)
    make_server("files")
    before = file_of(agent)
    for action in ("save", "rehearse"):
        answer = olga.post(URL, {**typed(olga), **forged, "action": action})
        page = answer.content.decode()
        assert answer.status_code == 403
        assert needed in page
        assert "shop" not in page.replace("workshop", "")
    assert (stored(agent).version, file_of(agent)) == (1, before)


def test_the_slug_is_no_field(root: Client, agent: Agent) -> None:
    forged = {**typed(root), "edited": ["slug", "name"], "slug": ["demo"], "name": ["New"]}
    assert root.post(URL, forged).status_code == 302
    assert (stored(agent).slug, stored(agent).name) == ("writer", "New")


def test_unknown_rows_and_those_of_others_cannot_be_chosen(root: Client, agent: Agent) -> None:
    other = make_agent("other", owner=agent.owner)
    url = SecretText.seal("sqlite:////srv/private.sqlite3")
    DatabaseConnection.objects.create(
        name="private", dialect="sqlite", url=url, agent=other, owner=other.owner
    )
    assert 'value="private"' not in page_of(root, "databases")
    for field, value in (("databases", "private"), ("groups", "nobody")):
        forged = {**typed(root), "edited": [field], field: [value]}
        assert root.post(URL, forged).status_code == 400
    assert not stored(agent).databases.exists()


def test_names_and_descriptions_are_shown_as_text(root: Client, agent: Agent) -> None:
    Group.objects.create(name=HOSTILE[:80])
    url = SecretText.seal("sqlite:////srv/shop.sqlite3")
    DatabaseConnection.objects.create(name="shop", dialect="sqlite", url=url, description=HOSTILE)
    tool = {"name": "read", "description": HOSTILE, "effect": "read", "digest": "x"}
    make_server("files", description=HOSTILE, tools=[tool])
    Agent.objects.filter(pk=agent.pk).update(name=HOSTILE, description=HOSTILE)
    for section in ("sharing", "databases", "mcp-servers", "agent"):
        page = page_of(root, section)
        assert "<script>alert" not in page
        assert "\u202e" not in re.sub('value="[^"]*"', "", page)


def test_a_server_is_chosen_with_some_of_its_tools(root: Client, agent: Agent) -> None:
    tools = [
        {
            "name": name,
            "title": "",
            "description": "It reads.",
            "input_schema": {"type": "object"},
            "annotations": {},
            "effect": "read",
            "digest": name,
        }
        for name in ("read", "list")
    ]
    make_server("files", tools=tools)
    data = typed(root, "mcp-servers")
    data |= {"mcp_servers-mode-files": ["some"], "mcp_servers-pick-files": ["read"]}
    assert root.post(URL, data).status_code == 302
    assert stored(agent).definition["mcp_servers"] == [{"server": "files", "tools": ["read"]}]
    again = typed(root, "mcp-servers")
    assert again["mcp_servers-pick-files"] == ["read"]
    assert "Nothing has changed." in root.post(URL, again, follow=True).content.decode()


def test_the_whole_file_is_shown_as_a_difference_before_it_is_stored(
    olga: Client, agent: Agent
) -> None:
    text = file_of(agent) + "max_turns: 4\n"
    preview = olga.post(
        URL, {"action": "preview", "file": text.replace("\n", "\r\n"), "section": "file"}
    )
    assert "+max_turns: 4" in preview.content.decode()
    assert stored(agent).max_turns != 4
    base = preview.context["plan"].base

    data = {"action": "store", "file": preview.context["file"], "base": base, "note": "Short"}
    assert olga.post(URL, {**data, "section": "file"}).status_code == 302
    assert stored(agent).max_turns == 4
    assert AuditEntry.objects.get(action="agent.changed").note == "Short"


@pytest.mark.parametrize(
    ("more", "status", "problem"),
    [
        ("max_turns: 0\n", 400, "max_turns"),
        ("tools: [exceute]\n", 400, "did you mean execute?"),
        ("nosuch: 1\n", 400, "nosuch"),
        ("interrupt_on: {execute: false}\n", 403, "agents.configure_approval"),
        ("everyone: true\n", 403, "agents.share_agent"),
        (": [", 400, "line"),
        ("<script>: 1\n", 400, "&lt;script&gt;"),
    ],
)
@pytest.mark.parametrize("action", ["preview", "store"])
def test_a_file_that_is_refused_is_shown_with_the_reason(
    olga: Client, agent: Agent, action: str, more: str, status: int, problem: str
) -> None:
    text = file_of(agent) + more
    base = olga.get(URL, {"section": "file"}).context["base"]
    answer = olga.post(URL, {"action": action, "file": text, "base": base, "section": "file"})
    page = answer.content.decode()
    assert answer.status_code == status
    assert problem in page
    assert answer.context["file"] == text
    assert stored(agent).version == 1


def test_a_stale_file_is_refused_and_stays(olga: Client, agent: Agent) -> None:
    base = olga.get(URL, {"section": "file"}).context["base"]
    text = file_of(agent) + "max_turns: 4\n"
    olga.post(URL, typed(olga, name=["First"]))
    answer = olga.post(URL, {"action": "store", "file": text, "base": base, "section": "file"})
    assert (answer.status_code, answer.context["file"]) == (409, text)
    assert answer.context["base"] == base
    assert stored(agent).max_turns != 4


@pytest.mark.parametrize("action", ["preview", "store"])
def test_the_page_changes_no_other_agent(olga: Client, agent: Agent, action: str) -> None:
    other = make_agent("other", owner=agent.owner)
    text = file_of(other) + "max_turns: 4\n"
    base = olga.get(URL, {"section": "file"}).context["base"]
    answer = olga.post(URL, {"action": action, "file": text, "base": base})
    assert answer.status_code == 400
    assert stored(other).max_turns != 4


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"action": "delete"},
        {"action": "save", "name": "x"},
        {"action": "save", "edited": "name", "name": "x"},
        {"action": "overwrite", "edited": "name", "name": "x", "tag": "y"},
        {"action": "restore"},
        {"action": "restore", "number": "²"},
        {"action": "restore", "number": "9" * 40},
    ],
)
def test_a_form_that_is_not_complete_changes_nothing(
    olga: Client, agent: Agent, data: dict[str, str]
) -> None:
    assert olga.post(URL, data).status_code in (400, 409)
    assert stored(agent).version == 1


def test_a_version_is_restored_with_a_check_for_changes(olga: Client, agent: Agent) -> None:
    olga.post(URL, typed(olga, "prompt", system_prompt=["Second"]))
    page = olga.get(URL, {"section": "versions"})
    tag = page.context["tag"]
    assert [version.number for version in page.context["versions"]] == [2, 1]
    data = {"action": "restore", "number": "1", "tag": tag, "section": "versions"}
    assert olga.post(URL, data).status_code == 302
    assert (stored(agent).version, stored(agent).system_prompt) == (3, "You write.\u202e")
    assert AuditEntry.objects.order_by("-id").first().note == "Restored version 1."
    assert olga.post(URL, {**data, "number": "2"}).status_code == 409
    tag = olga.get(URL).context["tag"]
    assert olga.post(URL, {**data, "number": "7", "tag": tag}).status_code == 404


def test_a_run_is_started_once_and_listed(olga: Client, agent: Agent) -> None:
    data = {"action": "try", "message": "Hello", "key": "k" * 26, "section": "prompt"}
    for _ in range(2):
        assert olga.post(URL, data)["Location"] == f"{URL}?section=prompt"
    run = Run.objects.get()
    assert reverse("web:run", args=[run.pk]) in page_of(olga)
    answer = olga.post(URL, {**data, "key": "j" * 26}, headers={"Accept": "application/json"})
    assert answer.status_code == 201
    assert answer.json()["url"].startswith("/runs/")
    refused = olga.post(URL, {**data, "message": ""}, headers={"Accept": "application/json"})
    assert (refused.status_code, "problem" in refused.json()) == (400, True)


AS_JSON = {"Accept": "application/json"}


def tried(client: Client, section: str = "prompt", **changed: Any) -> Data:
    """Return a form of the page as the button for a test run sends it."""
    return {**typed(client, section), "action": ["try"], "message": ["Hello"], **changed}


def test_a_test_run_uses_the_unsaved_form_and_nothing_else_does(olga: Client, agent: Agent) -> None:
    owner = User.objects.get(username="olga")
    change_definition(agent.pk, {}, by=owner, known_tools=known_tool_names())
    before, audited = file_of(agent), AuditEntry.objects.count()
    text = "Draft <script>alert(1)</script>\\u{202e}"
    data = tried(olga, system_prompt=[text])
    answer = olga.post(URL, data)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert form_data(page, "definition")["system_prompt"] == [text]
    assert form_data(page, "definition")["message"] == [""]
    run = Run.objects.get()
    assert run.spec["system_prompt"] == f"Draft {HOSTILE}"
    assert run.source == "draft"
    assert run.agent_version.spec["system_prompt"] == "You write.\u202e"
    assert (file_of(agent), stored(agent).version) == (before, 1)
    assert stored(agent).versions.count() == 1
    assert AuditEntry.objects.count() == audited
    assert "a draft of the agent" in olga.get(f"/runs/{run.pk}/").content.decode()
    olga.post(f"/runs/{run.pk}/messages/", {"message": "More"})
    assert Run.objects.latest("number").subagent_spec is None


def test_a_form_without_changes_tries_the_published_version(olga: Client, agent: Agent) -> None:
    assert olga.post(URL, tried(olga)).status_code == 302
    run = Run.objects.get()
    assert (run.subagent_spec, run.source) == (None, "web")


def test_the_file_can_be_tried_before_it_is_published(olga: Client, agent: Agent) -> None:
    text = file_of(agent).replace("You write.", "You read.")
    data = {**form_data(page_of(olga, "file"), "agent-file"), "action": ["try"]}
    answer = olga.post(URL, {**data, "file": [text], "message": ["Hello"]})
    assert answer.status_code == 200
    assert "You read." in form_data(answer.content.decode(), "agent-file")["file"][0]
    assert Run.objects.get().spec["system_prompt"].startswith("You read.")
    assert stored(agent).system_prompt == "You write.\u202e"
    other = text.replace("slug: writer", "slug: another")
    refused = olga.post(URL, {**data, "file": [other], "message": ["x"]}, headers=AS_JSON)
    assert (refused.status_code, Run.objects.count()) == (400, 1)


@pytest.mark.parametrize(
    ("section", "changed", "words"),
    [
        ("limits-of-a-run", {"max_turns": ["x"]}, "whole number"),
        ("model", {"fallbacks-0-provider": ["scripted"], "fallbacks-0-model": ["x"]}, "scripted"),
        ("form-of-answers", {"output_schema": ["{"]}, "not JSON"),
        ("prompt", {"message": [""]}, "empty"),
    ],
)
def test_an_invalid_draft_starts_nothing(
    olga: Client, agent: Agent, section: str, changed: dict[str, Any], words: str
) -> None:
    data = tried(olga, section, **changed)
    answer = olga.post(URL, data, headers=AS_JSON)
    assert answer.status_code == 400
    assert words in answer.json()["problem"]
    page = olga.post(URL, data)
    assert page.status_code == 400
    assert words in page.content.decode()
    assert not Run.objects.exists()
    assert stored(agent).system_prompt == "You write.\u202e"


def test_a_draft_needs_the_permissions_of_its_fields(olga: Client, agent: Agent) -> None:
    rules = ['[{"tool": "*", "action": "allow"}]']
    data = tried(olga, edited=["approval_rules"], approval_rules=rules)
    refused = olga.post(URL, data, headers=AS_JSON)
    assert "needs agents.configure_approval" in refused.json()["problem"]
    assert olga.post(URL, data).status_code == 403
    # The checks of values come after the rights, because they tell which names exist.
    wrong = olga.post(URL, {**data, "approval_rules": ["{"]}, headers=AS_JSON)
    assert "needs agents.configure_approval" in wrong.json()["problem"]
    text = file_of(agent) + "approval_rules:\n- tool: '*'\n  action: allow\n"
    file = {"action": "try", "section": "file", "file": text, "message": "x"}
    assert olga.post(URL, file, headers=AS_JSON).status_code == 400
    assert not Run.objects.exists()
    allow("olga", "configure_approval")
    assert olga.post(URL, data, headers=AS_JSON).status_code == 201
    assert Run.objects.get().spec["approval_rules"]


def test_the_same_key_does_not_start_two_drafts(olga: Client, agent: Agent) -> None:
    first = tried(olga, system_prompt=["One"], key=["k" * 26])
    urls = {olga.post(URL, first, headers=AS_JSON).json()["url"] for _ in range(2)}
    other = olga.post(URL, {**first, "system_prompt": ["Two"]}, headers=AS_JSON)
    assert (len(urls), other.status_code, Run.objects.count()) == (1, 400, 1)


def test_the_schema_is_checked_before_it_is_published(olga: Client, agent: Agent) -> None:
    for text, problem in (
        ('{"type": "object"', "not JSON"),
        ('{"type": "thing"}', "$.type must be one of"),
        ('{"<b>\u202e": 1}', "$ has"),
    ):
        data = typed(olga, "form-of-answers", output_schema=[text], action=["schema"])
        found = olga.post(URL, data, headers=AS_JSON).json()
        assert problem in found["problem"]
        assert "\u202e" not in found["problem"]
        assert found["result"] == ""
        page = olga.post(URL, data).content.decode()
        assert any(escape(problem) in error for error in errors_in_page(page))
    assert stored(agent).output_schema is None


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_a_valid_schema(olga: Client, agent: Agent, name: str) -> None:
    text = json.dumps(EXAMPLES[name])
    data = typed(olga, "form-of-answers", output_schema=[text], action=["schema"])
    answer = olga.post(URL, data, headers=AS_JSON)
    assert answer.json() == {"problem": "", "result": "The schema is valid."}
    assert "The schema is valid." in olga.post(URL, data).content.decode()
    assert name in page_of(olga, "form-of-answers")


def test_the_skills_of_the_agent_are_suggested_for_its_subagents(
    olga: Client, agent: Agent, tmp_path: Path
) -> None:
    other = make_agent(slug="other", everyone=False)
    for name, of in (("own-skill", agent), ("hidden-skill", other)):
        store_skill(package(tmp_path, name), scope=agent_scope(of.pk), agent_id=of.pk)
    page = page_of(olga, "subagents")
    assert '<option value="own-skill"></option>' in page
    assert "hidden-skill" not in page
    assert 'data-names="id_subagents-skills"' in page
    assert 'data-names="id_subagents-tools"' in page


@pytest.fixture
def calls(olga: Client, agent: Agent, sign_in: SignIn) -> None:
    """Calls in a run of olga's and in a run of peter's."""
    Agent.objects.filter(pk=agent.pk).update(everyone=True)
    sign_in("peter")
    for name in ("olga", "peter"):
        run = make_run(User.objects.get(username=name))
        call(run, 1, tool_input={"command": f"rm {name}-file {HOSTILE}"})
        call(run, 2, tool="ls", tool_input={"path": "/"})


def rehearsal(client: Client, **changed: Any) -> Data:
    row = {"approval_rules-0-tool": ["execute"], "approval_rules-0-action": ["deny"]}
    return {**typed(client, "approval"), **row, "action": ["rehearse"], **changed}


@pytest.mark.usefixtures("calls")
def test_a_rehearsal_shows_calls_that_the_person_may_read(olga: Client, agent: Agent) -> None:
    allow("olga", "configure_approval")
    answer = olga.post(URL, rehearsal(olga))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "2 calls, 1 would change" in page
    assert "olga-file" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert form_data(page, "definition")["approval_rules-0-tool"] == ["execute"]
    found = olga.post(URL, rehearsal(olga), headers={"Accept": "application/json"}).json()
    assert (found["calls"], found["changed"]) == (2, 1)
    assert [each["tool"] for each in found["changes"]] == ["execute"]
    assert [(each["tool"], each["after"]) for each in found["latest"]] == [
        ("ls", "runs"),
        ("execute", "denied"),
    ]
    assert "peter" not in str(found)
    allow("olga", "view_all_runs")
    again = olga.post(URL, rehearsal(olga), headers={"Accept": "application/json"}).json()
    assert (again["calls"], again["changed"]) == (4, 2)
    assert stored(agent).version == 1


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"approval_rules-0-when-command": ["("]}, "when.command"),
        ({"approval_rules-0-action": ["permit"]}, "action"),
        ({"days": ["0"]}, "days: "),
        ({"days": ["²"]}, "days: "),
        ({"approval_rules": ["{"]}, "not JSON"),
    ],
)
def test_wrong_rules_cannot_be_rehearsed(olga: Client, changed: Data, problem: str) -> None:
    allow("olga", "configure_approval")
    page = olga.post(URL, rehearsal(olga, **changed)).content.decode()
    assert any(problem in text for text in errors_in_page(page)), errors_in_page(page)
    answer = olga.post(URL, rehearsal(olga, **changed), headers={"Accept": "application/json"})
    assert problem in answer.json()["problem"]


def test_a_user_of_the_agent_only_reads_who_can_change_it(
    olga: Client, agent: Agent, sign_in: SignIn
) -> None:
    peter = sign_in("peter")
    data = typed(olga, name=["Mine"])
    assert peter.get(URL).status_code == 404
    assert peter.post(URL, data).status_code == 404
    Agent.objects.filter(pk=agent.pk).update(everyone=True)
    page = page_of(peter)
    assert "people with the permission to change agents" in page
    assert "You write" not in page
    assert "<textarea" not in page
    for action in ("save", "overwrite", "rehearse", "preview", "store", "restore", "try"):
        refused = peter.post(URL, {**data, "action": action})
        assert refused.status_code == 403
        assert "You write" not in refused.content.decode()
    assert stored(agent).name == "Writer"
    assert not Run.objects.exists()


def test_an_operator_changes_it_too(root: Client, agent: Agent) -> None:
    assert root.post(URL, typed(root, name=["Theirs"])).status_code == 302
    assert stored(agent).name == "Theirs"


def test_the_owner_can_open_an_inactive_agent(olga: Client, agent: Agent) -> None:
    Agent.objects.filter(pk=agent.pk).update(is_active=False)
    assert "inactive" in page_of(olga)
    assert olga.post(URL, typed(olga, description=["Old"])).status_code == 302
    assert stored(agent).description == "Old"
    answer = olga.post(URL, {**typed(olga), "is_active": ["on"]})
    assert answer.status_code in (302, 403)
    assert stored(agent).is_active is False


def test_the_agents_other_pages_lead_to_it(olga: Client, agent: Agent) -> None:
    for path in ("/", "/agents/writer/knowledge/", "/agents/writer/skills/"):
        assert f'href="{URL}"' in olga.get(path).content.decode(), path


def test_a_foreign_page_changes_nothing(agent: Agent) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(agent.owner)
    assert client.post(URL, {"action": "save"}).status_code == 403
    assert client.post(URL, {"action": "try", "message": "x"}).status_code == 403
