"""The second of two requests waits for the first, and then sees the changes of the first.

The first request pauses in the middle of its work while the second starts. SQLite never allows two
writers at the same time; PostgreSQL does, except for rows that a service locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import override_settings

from agents.models import ApiToken, Run, Upload
from agents.services.errors import Conflict, InvalidRequest
from agents.services.files.uploads import store_uploads
from agents.services.runs.resume_ended import resume_as_new_run
from agents.services.tokens import MAX_OWN_TOKENS, create_own_token, create_token
from agents.states import RunStatus
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.support.hang import HANG
from tests.support.runs import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="needs PostgreSQL"),
    pytest.mark.both_databases,
]

Pause = Callable[[], None]


def during(first: Callable[[Pause], Any], second: Callable[[], Any]) -> list[Any]:
    """Return the results or exceptions of both; `second` starts when `first` pauses.

    `first` continues when `second` waits for a lock or has ended.
    """
    inside, go_on = Event(), Event()

    def pause() -> None:
        inside.set()
        assert go_on.wait(30)

    def own_connection(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:  # noqa: BLE001  # the test checks the exception
            return error
        finally:
            connection.close()

    def somebody_waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE NOT granted AND datname = current_database()"
            )
            return cursor.fetchone() is not None

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(own_connection, lambda: first(pause))
        wait_until(lambda: inside.is_set() or one.done(), "the pause of the first")
        two = threads.submit(own_connection, second)
        try:
            wait_until(lambda: two.done() or somebody_waits(), "that the second waits or ends")
        finally:
            go_on.set()
        return [one.result(timeout=HANG), two.result(timeout=HANG)]


class SlowFile(SimpleUploadedFile):
    """A file whose sender pauses before the last bytes."""

    pause: Pause

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        yield b"first half, "
        self.pause()
        yield b"second half"


@pytest.mark.parametrize("sandbox", [True, False])
def test_an_upload_waits_for_the_one_before_it(sandbox: bool) -> None:
    make_agent(sandbox=sandbox)
    run = make_run(make_user("ann"))
    # The first upload allocates the thread's account, and other uploads wait for it.
    store_uploads(run.thread, [SimpleUploadedFile("early.txt", b"x")])
    slow = SlowFile("slow.txt", b"first half, second half")

    def first(pause: Pause) -> Any:
        slow.pause = pause
        return store_uploads(run.thread, [slow, SimpleUploadedFile("next.txt", b"x")])

    with override_settings(VEL={**settings.VEL, "UPLOAD_FILES": 3}):
        one, two = during(
            first,
            lambda: store_uploads(run.thread, [SimpleUploadedFile("quick.txt", b"x")]),
        )
    assert isinstance(two, InvalidRequest), (one, two)
    assert [upload.name for upload in Upload.objects.all()] == [
        "early.txt",
        "slow.txt",
        "next.txt",
    ]


def test_resuming_waits_for_a_message_that_arrives() -> None:
    make_agent()
    ann = make_user("ann")
    run = make_run(ann)
    Run.objects.update(status=RunStatus.FAILED)

    def first(pause: Pause) -> Any:
        with transaction.atomic():
            later = make_run(ann, message="Something else", thread=run.thread_id)
            # Simulate that the run ended before the other request reads it.
            Run.objects.filter(pk=later.pk).update(status=RunStatus.COMPLETED)
            pause()

    one, two = during(first, lambda: resume_as_new_run(run.pk, by=ann))
    assert one is None
    assert isinstance(two, Conflict), two
    assert two.code == "thread_went_on"


def test_of_two_concurrent_tokens_only_one_fits_the_limit() -> None:
    ann = make_user("ann")
    for _ in range(MAX_OWN_TOKENS - 1):
        create_token(ann)

    def first(pause: Pause) -> Any:
        with transaction.atomic():
            create_own_token(ann, name="one", scopes=["read"], days=1)
            pause()

    one, two = during(first, lambda: create_own_token(ann, name="two", scopes=["read"], days=1))
    assert one is None
    assert isinstance(two, Conflict), two
    assert ApiToken.objects.count() == MAX_OWN_TOKENS
