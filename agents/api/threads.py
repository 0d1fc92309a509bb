"""Endpoints that list, read, rename and erase a person's threads."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.files import thread_of
from agents.api.serializers.threads import (
    THREAD_ORDER,
    ThreadBody,
    ThreadListQuery,
    ThreadShape,
    with_thread_columns,
)
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.list_queries import created_between
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page
from agents.doors.rest.serializers import read_body, read_query
from agents.models import TokenScope
from agents.selectors.visible import of_agent, threads_for
from agents.services.erasure.actions import erase_thread
from agents.services.errors import NotFound
from agents.services.threads import rename_thread


class Threads(ApiView):
    """The endpoint `GET /threads`: your own, newest first."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_threads", "List your threads", query=ThreadListQuery, answer=Page(ThreadShape))
    def get(self, request: Request) -> Response:
        query = read_query(ThreadListQuery, request)
        threads = threads_for(person(request)).filter(**created_between(query))
        if "agent" in query:
            threads = threads.filter(of_agent("agent", query["agent"]))
        if "key" in query:
            threads = threads.filter(key=query["key"])
        among = None
        shown = with_thread_columns(threads)
        if "status" in query:
            among = threads
            shown = shown.filter(Q(("last_status", query["status"])))
        show = ThreadShape().to_representation
        return ordered_page(shown, show, query, THREAD_ORDER, among)


class OneThread(ApiView):
    """The endpoints `GET`, `PATCH` and `DELETE /threads/{id}`."""

    # DELETE requires `manage`: a stolen token with the scope `run` cannot erase its traces.
    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PATCH": TokenScope.RUN,
        "DELETE": TokenScope.MANAGE,
    }

    @operation("get_thread", "Read a thread", answer=ThreadShape)
    def get(self, request: Request, thread_id: str) -> Response:
        return Response(show_thread(person(request), thread_id))

    @operation("rename_thread", "Give a thread a title", body=ThreadBody, answer=ThreadShape)
    def patch(self, request: Request, thread_id: str) -> Response:
        user = person(request)
        thread = thread_of(user, thread_id)
        rename_thread(thread, read_body(ThreadBody, request)["title"])
        return Response(show_thread(user, thread_id))

    @operation(
        "erase_thread",
        "Erase a thread permanently, with its runs, files and subagents",
        answers={204: None},
        errors=(409,),
    )
    def delete(self, request: Request, thread_id: str) -> Response:
        user = person(request)
        erase_thread(thread_of(user, thread_id).pk, by=user)
        return Response(status=204)


def show_thread(user: AbstractBaseUser, thread_id: str) -> dict[str, object]:
    """Return a thread of `user`. Raises `NotFound`."""
    thread = with_thread_columns(threads_for(user)).filter(pk=thread_id).first()
    if thread is None:
        raise NotFound(f"You have no thread {thread_id!r}.", code="unknown_thread")
    return ThreadShape(thread).data
