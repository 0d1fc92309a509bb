"""The earlier and later messages of a conversation on the page of a run."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.events.append import dump
from agents.features.conversations.earlier import (
    ANSWER_CHARACTERS,
    MESSAGE_CHARACTERS,
    MOST_SHOWN,
    SHOWN,
    earlier_messages,
)
from agents.models import Message, Run, Upload
from tests.agents.api.rows import make_user
from tests.support import runs, site_writer

pytestmark = pytest.mark.django_db

HOSTILE = (
    "<script>pwned()</script> <img src=x onerror=pwned()> [go](javascript:pwned()) "
    "</script><!-- \u202egnp.exe"
)


@pytest.fixture
def ada() -> User:
    user = runs.make_user()
    runs.make_agent(user)
    return user


def say(
    user: User, text: str, answer: str = "", thread: str | None = None, **fields: object
) -> Run:
    """Add an ended run with this answer to the conversation."""
    run = runs.start_run(user, text, thread=thread)
    end = {"status": "completed", "ended_at": timezone.now(), **fields}
    Run.objects.filter(pk=run.pk).update(**end)
    if answer:
        content = dump([{"type": "text", "text": answer}])
        Message.objects.create(run=run, turn=1, role="assistant", content=content)
    return run


def ask(run: Run) -> None:
    """Let the run ask for an approval and end."""
    site_writer.ask(run.pk, "send", {})
    Run.objects.filter(pk=run.pk).update(status="completed", wait_reason="")


def conversation(user: User, count: int) -> list[Run]:
    first = say(user, "Q1.", "A1.")
    rest = (say(user, f"Q{n}.", f"A{n}.", first.thread_id) for n in range(2, count + 1))
    return [first, *rest]


def page(user: User, run: Run, address: str = "") -> str:
    client = Client()
    client.force_login(user)
    return client.get(f"/runs/{run.pk}/{address}").content.decode()


def earlier_part(html: str) -> str:
    found = re.search(r'<section class="earlier".*?</section>', html, re.DOTALL)
    return found[0] if found else ""


def test_the_page_shows_earlier_messages_and_answers_in_order_above_its_message(ada: User) -> None:
    first, second, third = conversation(ada, 3)
    part = earlier_part(page(ada, third))
    assert re.findall(r"[QA]\d\.(?=</div>)", part) == ["Q1.", "A1.", "Q2.", "A2."]
    assert f'href="/runs/{first.pk}/">Show the steps' in part
    assert f'href="/runs/{second.pk}/">Show the steps' in part
    assert earlier_part(page(ada, first)) == ""


def test_the_last_reply_of_an_earlier_run_is_its_answer(ada: User) -> None:
    first = say(ada, "Rain?", "I look.")
    content = dump([{"type": "text", "text": "It rains."}])
    Message.objects.create(run=first, turn=2, role="assistant", content=content)
    second = say(ada, "Snow?", thread=first.thread_id)
    part = earlier_part(page(ada, second))
    assert "It rains." in part
    assert "I look." not in part


def test_failed_and_unfinished_runs_say_so(ada: User) -> None:
    first = say(ada, "Rain?", status="failed")
    second = say(ada, "Snow?", thread=first.thread_id, status="cancelled")
    third = say(ada, "Sun?", thread=first.thread_id)
    last = say(ada, "Wind?", thread=first.thread_id)
    Run.objects.filter(pk=third.pk).update(status="waiting")
    part = earlier_part(page(ada, last))
    assert [found.run.pk for found in earlier_messages(ada, last, "").messages] == [
        first.pk,
        second.pk,
        third.pk,
    ]
    statuses = re.findall(r'class="status" data-status="(\w+)">\1<', part)
    assert statuses == ["failed", "cancelled", "waiting"]
    assert part.count("There is no answer.") == 2
    assert part.count("There is no answer yet.") == 1


def test_the_newest_messages_are_shown_first_and_a_link_shows_more(ada: User) -> None:
    found = conversation(ada, SHOWN + 3)
    last = found[-1]
    part = earlier_part(page(ada, last))
    assert part.count("<article") == SHOWN
    assert "Q2." not in part
    link = f"?earlier={2 * SHOWN}#earlier-{found[2].pk}"
    assert f'href="{link}"' in part
    more = earlier_part(page(ada, last, link.partition("#")[0]))
    assert more.count("<article") == SHOWN + 2
    assert "Show earlier messages" not in more


@pytest.mark.parametrize("asked", ["-1", "x", "1e9", "²", "0", "", "9" * 5_000])
def test_an_invalid_number_of_messages_shows_the_usual_number(ada: User, asked: str) -> None:
    last = conversation(ada, 2)[-1]
    assert len(earlier_messages(ada, last, asked).messages) == 1


def test_more_messages_than_the_limit_are_on_the_page_of_the_oldest_one(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.features.conversations.earlier.MOST_SHOWN", SHOWN)
    assert MOST_SHOWN > SHOWN
    found = conversation(ada, SHOWN + 2)
    part = earlier_part(page(ada, found[-1], "?earlier=5000"))
    assert part.count("<article") == SHOWN
    assert f'href="/runs/{found[1].pk}/">Show earlier messages' in part


def test_the_number_of_queries_is_independent_of_the_number_of_messages(ada: User) -> None:
    def queries(run: Run) -> int:
        with CaptureQueriesContext(
            connection,
        ) as made:
            page(ada, run)
        return len(made)

    found = conversation(ada, 9)
    queries(found[1])
    assert queries(found[1]) == queries(found[7])


def test_long_texts_are_cut_and_say_so(ada: User) -> None:
    first = say(ada, "m" * 900_000, "a" * 900_000)
    last = say(ada, "Next", thread=first.thread_id)
    (found,) = earlier_messages(ada, last, "").messages
    assert (len(found.message), len(found.answer)) == (MESSAGE_CHARACTERS, ANSWER_CHARACTERS)
    assert found.is_cut
    assert "Cut to its start." in earlier_part(page(ada, last))


def test_of_many_long_answers_only_the_newest_are_markdown(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.features.conversations.earlier.MARKDOWN_CHARACTERS", 25)
    first = say(ada, "Q1", "*" * 10)
    for answer in ("*" * 10, "", "*" * 10):
        say(ada, "Q", answer, first.thread_id)
    last = say(ada, "Next", thread=first.thread_id)
    found = earlier_messages(ada, last, "").messages
    assert [each.tree is not None for each in found] == [False, True, False, True]
    assert [each.answer for each in found] == ["*" * 10, "*" * 10, "", "*" * 10]


def test_a_hostile_answer_stays_text(ada: User) -> None:
    table = "|a" * 3_000 + "|\n" + "|-" * 3_000 + "|\n" + "|b" * 3_000
    first = say(ada, HOSTILE, HOSTILE)
    say(ada, "Table", table, first.thread_id)
    last = say(ada, "Next", thread=first.thread_id)
    part = earlier_part(page(ada, last))
    assert "<script>" not in part
    assert "<img" not in part
    assert 'href="javascript' not in part
    assert "\u202e" not in part.partition('<script type="application/json">')[0]
    assert part.count("⟨U+202E⟩") == 2
    assert part.count("<script") == part.count("</script>") == 1  # the table is plain text
    hostile = earlier_messages(ada, last, "").messages[0]
    assert '"href"' not in dump(hostile.tree)


def test_an_earlier_message_has_its_files_and_its_answer_as_data(ada: User) -> None:
    value = {"order": 10482, "note": "</pre><script>pwned()</script>\u202e"}
    first = say(ada, "Order?", structured_output=value, has_uploads=True)
    for name in ("bill.pdf", "<b>\u202egnp.exe"):
        Upload.objects.create(
            thread=first.thread, run=first, name=name, path="/x", original_name=name, size=2048
        )
    last = say(ada, "Next", thread=first.thread_id)
    part = earlier_part(page(ada, last))
    assert re.findall(r"<li>(.*?)</li>", part) == [
        "bill.pdf (2.0\xa0KB)",
        "&lt;b&gt;⟨U+202E⟩gnp.exe (2.0\xa0KB)",
    ]
    assert "&quot;order&quot;: 10482,\n" in part
    assert "&lt;/pre&gt;&lt;script&gt;pwned()&lt;/script&gt;⟨U+202E⟩" in part
    assert "There is no answer" not in part
    assert earlier_part(page(ada, say(ada, "Again", thread=first.thread_id))).count("<li>") == 2


@pytest.mark.parametrize(
    "value", ["a" * 900_000, [0] * 2_000, "deep"], ids=["long", "wide", "deep"]
)
def test_a_long_or_deep_value_is_cut_or_on_one_line(ada: User, value: object) -> None:
    if value == "deep":
        for _ in range(450):
            value = [value, value] if value == "deep" else [value]
    first = say(ada, "Order?", "Done", structured_output=value)
    last = say(ada, "Next", thread=first.thread_id)
    (found,) = earlier_messages(ada, last, "").messages
    assert 0 < len(found.value) <= 2 * ANSWER_CHARACTERS
    assert found.is_cut == (value == "a" * 900_000)


def test_strangers_see_nothing_and_approvers_only_what_they_can_watch(ada: User) -> None:
    first, second, third = conversation(ada, 3)
    assert _status(make_user("eve"), third) == 404
    approver = make_user("bea")
    site_writer.allow("bea", ["approve_toolcall"])
    ask(third)
    approver = User.objects.get(pk=approver.pk)
    assert earlier_part(page(approver, third)) == ""
    ask(first)
    part = earlier_part(page(approver, third))
    assert "Q1." in part
    assert second.pk not in part
    site_writer.allow("bea", ["view_all_runs"])
    assert second.pk in earlier_part(page(User.objects.get(pk=approver.pk), third))


def _status(user: User, run: Run) -> int:
    client = Client()
    client.force_login(user)
    return client.get(f"/runs/{run.pk}/").status_code


def test_links_to_files_are_only_for_people_who_can_read_the_run(ada: User) -> None:
    first = say(ada, "Write", "See [it](outputs/a.txt).")
    last = say(ada, "Next", thread=first.thread_id)
    assert f'"/runs/{first.pk}/files/' in page(ada, last)
    bea = make_user("bea")
    site_writer.allow("bea", ["approve_toolcall"])
    for run in (first, last):
        ask(run)
    part = earlier_part(page(User.objects.get(pk=bea.pk), last))
    assert "outputs/a.txt" in part
    assert "/files/" not in part


def test_runs_of_subagents_copies_and_erased_runs_are_not_shown(ada: User) -> None:
    first, second, third, last = conversation(ada, 4)
    child = Run.objects.get(pk=site_writer.make_child(first.pk, "Look"))
    Run.objects.filter(pk=second.pk).update(is_copy=True)
    Run.objects.filter(pk=third.pk).update(is_erased=True)
    assert [found.run.pk for found in earlier_messages(ada, last, "").messages] == [first.pk]
    assert earlier_part(page(ada, child)) == ""


def test_a_fork_links_to_the_conversation_that_it_comes_from(ada: User) -> None:
    origin = say(ada, "Rain?", "Yes.")
    forked = say(ada, "Snow?")
    type(forked.thread).objects.filter(pk=forked.thread_id).update(forked_from=origin)
    part = earlier_part(page(ada, forked))
    assert f'href="/runs/{origin.pk}/">This conversation was forked' in part


def test_an_older_message_links_to_the_next_and_the_newest_one(ada: User) -> None:
    first, second, third = conversation(ada, 3)
    html = page(ada, first)
    assert f'href="/runs/{second.pk}/">Next message' in html
    assert f'href="/runs/{third.pk}/">Newest message' in html
    html = page(ada, second)
    assert f'href="/runs/{third.pk}/">Next message' in html
    assert "Newest message" not in html
    assert "Next message</a>" not in page(ada, third)
