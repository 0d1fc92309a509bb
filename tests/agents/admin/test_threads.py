"""The admin's list of threads and the transcript of one."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.features.planning.models import Todo, TodoHeading
from agents.models import Thread
from agents.states import RunStatus
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, list_url, page_url, text_of

pytestmark = pytest.mark.django_db


def test_the_transcript_shows_every_run_in_order():
    owner = rows.user()
    first = rows.put(rows.run(owner, message="What is in src?"), RunStatus.RUNNING)
    rows.reply(first, 1, "I will look.", calls=1)
    rows.call(first, 1, "ls", {"path": "src"}, result="app.py")
    rows.reply(first, 2, "One file.")
    rows.put(first, RunStatus.COMPLETED)
    second = rows.run(owner, message="Delete it.", thread=first.thread_id)

    text = text_of(client_of(rows.superuser()).get(page_url(first.thread)))

    story = ["What is in src?", "I will look.", "app.py", "One file.", "Delete it."]
    places = [text.rindex(part) for part in story]
    assert places == sorted(places)
    assert page_url(first) in text
    assert page_url(second) in text


def test_todos_and_the_workspace_are_shown():
    thread = rows.run(rows.user(), workspace_path="/srv/project").thread
    Todo.objects.create(thread=thread, position=1, content="Look around", note="half done")
    TodoHeading.objects.create(thread=thread, current_task="Clean the house")

    text = text_of(client_of(rows.superuser()).get(page_url(thread)))

    assert "Look around" in text
    assert "half done" in text
    assert "Clean the house" in text
    assert "/srv/project" in text


@pytest.mark.slow
def test_the_list_needs_no_more_queries_for_ten_threads_than_for_one():
    owner, client = rows.user(), client_of(rows.superuser())
    rows.run(owner)
    with CaptureQueriesContext(connection) as few:
        client.get(list_url(Thread))
    for _ in range(9):
        rows.run(owner)

    with CaptureQueriesContext(connection) as many:
        text = text_of(client.get(list_url(Thread)))

    assert text.count('class="field-run_count">1<') == 10
    assert len(many) <= len(few) + 1
    assert len(many) < 20


def test_the_transcript_needs_no_more_queries_for_many_runs_than_for_few():
    owner, client = rows.user(), client_of(rows.superuser())
    root = rows.run(owner)
    rows.reply(root, 1, "one", calls=1)
    rows.asked(root)
    with CaptureQueriesContext(connection) as few:
        client.get(page_url(root.thread))
    for number in range(2, 9):
        child = rows.child(root, number=number)
        rows.reply(child, 1, "more", calls=1)
        rows.call(child, 1)

    with CaptureQueriesContext(connection) as many:
        client.get(page_url(root.thread))

    assert len(many) <= len(few)


def test_a_long_thread_opens_at_its_end():
    owner, client = rows.user(), client_of(rows.superuser())
    root = rows.run(owner, message="The first words.")
    for number in range(2, 13):
        rows.reply(rows.child(root, number=number), 1, f"Answer {number}.")

    last = text_of(client.get(page_url(root.thread)))
    first = text_of(client.get(page_url(root.thread), {"page": 1}))

    assert "Answer 12." in last
    assert "Answer 2." not in last
    assert "Answer 2." in first


def test_threads_are_read_only():
    thread = rows.run(rows.user()).thread
    client = client_of(rows.superuser())

    assert client.post(page_url(thread), {"title": "mine"}).status_code == 403
    delete = reverse("admin:agents_thread_delete", args=[thread.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert client.get(reverse("admin:agents_thread_add")).status_code == 403


def test_without_view_all_runs_a_user_sees_only_own_threads():
    clerk = rows.staff("clerk", "view_thread")
    own, foreign = rows.run(clerk).thread, rows.run(rows.user()).thread

    text = text_of(client_of(clerk).get(list_url(Thread)))

    assert page_url(own) in text
    assert page_url(foreign) not in text
