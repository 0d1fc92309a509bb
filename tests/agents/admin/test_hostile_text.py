"""Texts of agents, tools and users are escaped and completely visible in every page."""

from __future__ import annotations

import json
import re

import pytest

from agents.doors.admin.text import shown, shown_result_json, typed
from agents.features.planning.models import Todo, TodoHeading
from agents.hidden_text import visible
from agents.models import Agent, ApprovalRequest, Run, Thread
from agents.states import RunStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, page_url, text_of

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"><b>{{ 7|add:1 }}</b>"
MARKUP = re.compile(r"<script>alert|<img src=x|<b>\{\{|<b>8")


@pytest.mark.django_db
def test_markup_is_escaped_on_every_page():
    root = rows.superuser()
    agent = rows.agent(
        "evil", name=EVIL, description=EVIL, system_prompt=EVIL, provider=EVIL[:50], model=EVIL
    )
    agent.system_prompt = f"{EVIL}\n{EVIL}"
    agent.name = f"{EVIL[:80]} again"
    rows.save_agent(agent)
    owner = rows.user("ada")
    run = rows.run(
        owner, slug="evil", message=EVIL, key=EVIL, workspace_path=f"/{EVIL}", source=EVIL[:20]
    )
    rows.reply(run, 1, EVIL, calls=2)
    rows.call(
        run,
        1,
        EVIL,
        {EVIL: EVIL, "list": [EVIL]},
        status="failed",
        result=EVIL,
        is_error=True,
        code=EVIL[:50],
    )
    rows.call(
        run, 1, "read_file", position=1, result=[{"type": "text", "text": EVIL}, {"type": EVIL}]
    )
    rows.events(run, 1)
    with_event = run.events.get()
    run.events.update(type=EVIL[:40], data=json.dumps({"text": EVIL}))
    assert with_event.seq == 1
    Todo.objects.create(thread=run.thread, position=1, content=EVIL, note=EVIL)
    TodoHeading.objects.create(thread=run.thread, current_task=EVIL)
    request = rows.asked(run, EVIL, {EVIL: EVIL}, turn=2)
    ApprovalRequest.objects.filter(pk=request.pk).update(prompt=EVIL)
    client = client_of(root)
    pages = [
        client.get(list_url(Run)),
        client.get(list_url(Thread)),
        client.get(list_url(Agent)),
        client.get(list_url(ApprovalRequest)),
        client.get(page_url(agent)),
        client.get(page_url(run.thread)),
        client.get(page_url(request)),
        act(client, "approve_selected", request),
        client.post(
            page_url(request), {"decision": "edit", "digest": EVIL, "input": EVIL, "reason": EVIL}
        ),
        client.post(
            page_url(request),
            {"decision": "reject", "digest": request.digest, "reason": EVIL},
            follow=True,
        ),
    ]
    rows.put(
        run, RunStatus.FAILED, error_code=EVIL[:50], error_message=EVIL, finish_reason=EVIL[:50]
    )
    pages += [
        client.get(page_url(run)),
        act(client, "resume_selected", run),
        act(client, "delete_selected", agent),
    ]

    for page in pages:
        assert page.status_code == 200
        text = text_of(page)
        assert "&lt;script&gt;alert(1)" in text
        assert not MARKUP.search(text), MARKUP.search(text)


@pytest.mark.django_db
def test_our_pages_have_no_inline_scripts_or_styles():
    run = rows.run(rows.user())
    request = rows.asked(run)
    client = client_of(rows.superuser())

    for page in (page_url(run), page_url(run.thread), page_url(request), list_url(Run)):
        text = text_of(client.get(page))
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\x1b[2Kb", "a⟨U+001B⟩[2Kb"),
        ("a\x00b", "a⟨U+0000⟩b"),
        ("a\rb", "a⟨U+000D⟩b"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("a\u2028b", "a⟨U+2028⟩b"),
        ("a\ud800b", "a⟨U+D800⟩b"),
        ("a\U000e0041b", "a⟨U+E0041⟩b"),
        ("tab\tand\nline ü 漢 🙂", "tab\tand\nline ü 漢 🙂"),
    ],
)
def test_invisible_characters_appear_as_code_points(written, seen):
    assert visible(written) == seen


def test_the_json_to_edit_means_the_same_with_nothing_hidden_in_it():
    value = {"command": "a\u202eb\U000e0041\nü"}

    text = typed(value)

    assert json.loads(text) == value
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert "ü" in text


@pytest.mark.parametrize(
    "end", ["\\", "\\u", "\\u00", "\\u00e", "\\\\", "\\\\\\", "\\\\u00", "\\ud83d", "é"]
)
def test_a_result_that_was_cut_anywhere_is_still_shown(end):
    text = shown_result_json('"some words' + end, 10_000)

    assert text.text.startswith("some words")
    assert text.cut > 0
    text.text.encode()


def test_a_cut_text_states_its_length_and_the_missing_part():
    text = shown("ab\n" * 10_000)

    assert text.is_folded
    assert (text.size, text.cut) == (30_000, 10_000)
    assert shown("ab\n" * 10_000, limit=None).cut == 0
    assert shown("ab\ncd").measure == "5 characters, 2 lines"
    assert shown("ab").measure == ""


@pytest.mark.django_db
def test_a_result_with_a_lone_surrogate_does_not_break_the_page():
    run = rows.run(rows.user())
    call = rows.call(run, 1, result="x")
    type(call).objects.filter(pk=call.pk).update(result='"broken \\ud800 half"')

    text = text_of(client_of(rows.superuser()).get(page_url(run)))

    assert "broken ⟨U+D800⟩ half" in text
