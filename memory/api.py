"""REST endpoints for an agent's memory: its users read it, and permitted people change it."""

from __future__ import annotations

from dataclasses import asdict
from typing import ClassVar

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest import converters  # noqa: F401  # the pattern opaque_id
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.managed.coverage import RestObject
from agents.doors.rest.named_agent import agent_of
from agents.doors.rest.operations import OneOf, Page, operation
from agents.doors.rest.serializers import read_body, read_query
from agents.models import TokenScope
from agents.services.errors import InvalidRequest, NotFound
from memory.actions.changes import delete_file, restore_revision, write_file
from memory.actions.purge import purge_history
from memory.errors import NoSuchFile
from memory.models import MemoryEditRequest, MemoryFile, MemoryRevision
from memory.paths import InvalidPath, check_path
from memory.queries.files import (
    list_memory_entries,
    memory_file,
    memory_revisions,
    revision_content,
)
from memory.serializers import (
    DeleteQuery,
    FileBody,
    FileListQuery,
    MemoryChangeShape,
    MemoryEntriesShape,
    MemoryFileShape,
    PurgeBody,
    PurgeShape,
    RestoreRevisionBody,
    RevisionContentShape,
    RevisionShape,
    RevisionsQuery,
    show_change,
    show_entry,
    show_file,
    show_revision,
)

SOURCE = "api"


class Memory(ApiView):
    """`GET /agents/{id}/memory?directory=`: the files of a directory, without their contents"""

    tag = "memory"
    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_memory", "List memory files", query=FileListQuery, answer=MemoryEntriesShape)
    def get(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        asked = read_query(FileListQuery, request)["directory"]
        entries = list_memory_entries(agent.pk, "" if asked == "all" else asked, user.pk)
        return Response({"files": [show_entry(entry) for entry in entries]})


class OneMemoryFile(ApiView):
    """`GET`, `PUT` and `DELETE /agents/{id}/memory/{path}`: one file with its content"""

    tag = "memory"
    # Not `approve`: a token that decides requests need not be able to write directly.
    scopes: ClassVar = {
        "GET": TokenScope.READ,
        "PUT": TokenScope.MANAGE,
        "DELETE": TokenScope.MANAGE,
    }

    @operation("get_memory_file", "Read a memory file", answer=MemoryFileShape)
    def get(self, request: Request, agent_id: str, path: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        file = memory_file(agent.pk, existing_path(path), user.pk)
        if file is None:
            raise no_such_file(path)
        return Response(show_file(file))

    @operation(
        "put_memory_file",
        "Write a memory file",
        body=FileBody,
        answers={200: MemoryChangeShape, 201: MemoryChangeShape},
        errors=(409,),
    )
    def put(self, request: Request, agent_id: str, path: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        body = read_body(FileBody, request)
        try:
            is_new = memory_file(agent.pk, path, user.pk) is None
        except InvalidPath as problem:
            raise InvalidRequest(str(problem)) from None
        revision = write_file(agent, path, **body, by=user, source=SOURCE)
        return Response(
            show_change(path, revision, memory_file(agent.pk, path, user.pk)),
            status=201 if is_new else 200,
        )

    @operation(
        "delete_memory_file",
        "Delete a memory file",
        query=DeleteQuery,
        answers={204: None},
        errors=(409,),
    )
    def delete(self, request: Request, agent_id: str, path: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        base = read_query(DeleteQuery, request).get("base_revision")
        delete_file(agent, existing_path(path), by=user, base_revision=base, source=SOURCE)
        return Response(status=204)


class MemoryRevisions(ApiView):
    """`GET /agents/{id}/memory-revisions?path=`: the history of a file

    With `number`, that revision and its content.
    """

    tag = "memory"
    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_revisions",
        "Read a memory file's history, or one state of it",
        query=RevisionsQuery,
        answer=OneOf((RevisionContentShape,), (Page(RevisionShape),)),
    )
    def get(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        query = read_query(RevisionsQuery, request)
        path, number = query["path"], query.get("number")
        try:
            entries = memory_revisions(agent.pk, path, user.pk)
            if number is not None:
                entry = next((entry for entry in entries if entry.number == number), None)
                is_purged = entry is not None and entry.is_purged
                content = None if is_purged else revision_content(agent.pk, path, number, user.pk)
                assert entry is not None, "its content was found"
                return Response({"path": path, **show_revision(entry), "content": content})
        except InvalidPath as problem:
            raise InvalidRequest(str(problem)) from None
        except NoSuchFile as problem:
            raise NotFound(str(problem)) from None
        if not entries:
            raise NotFound(f"There is no history of {path!r}.")
        later = [entry for entry in entries if entry.number < query.get("cursor", entry.number + 1)]
        shown = later[: query["limit"]]
        more = shown[-1].number if len(later) > len(shown) else None
        return Response({"results": [show_revision(entry) for entry in shown], "next_cursor": more})


class RestoreMemory(ApiView):
    """`POST /agents/{id}/memory-restore`: restores an earlier state as a new revision"""

    tag = "memory"
    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "restore_memory_file",
        "Restore a memory file",
        body=RestoreRevisionBody,
        answer=MemoryChangeShape,
        errors=(409,),
    )
    def post(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        body = read_body(RestoreRevisionBody, request)
        path = body["path"]
        revision = restore_revision(agent, path, body["revision"], by=user, source=SOURCE)
        return Response(show_change(path, revision, memory_file(agent.pk, path, user.pk)))


class PurgeMemory(ApiView):
    """`POST /agents/{id}/memory-purge`: erases the earlier contents of a file"""

    tag = "memory"
    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "purge_memory_file", "Purge a memory file's history", body=PurgeBody, answer=PurgeShape
    )
    def post(self, request: Request, agent_id: str) -> Response:
        user = person(request)
        agent = agent_of(user, agent_id)
        path = read_body(PurgeBody, request)["path"]
        done = purge_history(agent, path, by=user, source=SOURCE)
        return Response({"path": path, **asdict(done)})


def existing_path(path: str) -> str:
    """Return `path` if it is valid in a memory; otherwise raise the 404 of a missing file."""
    try:
        return check_path(path)
    except InvalidPath:
        raise no_such_file(path) from None


def no_such_file(path: str) -> NotFound:
    return NotFound(f"There is no {path[:200]!r} in this memory.", code="unknown_file")


# Everyone who can use the agent reads and changes the files of `me/` that are their own.
_READ = "users of the agent, its approvers, or `agents.view_all_runs`"
_CHANGE = "people who may change the memory of the agent"

OBJECTS = [
    RestObject(
        model=MemoryFile,
        path="agents/{id}/memory",
        list=("list_memory", _READ),
        read=("get_memory_file", _READ),
        create=("put_memory_file", _CHANGE),
        change=("put_memory_file", _CHANGE),
        delete=("delete_memory_file", _CHANGE),
    ),
    RestObject(
        model=MemoryRevision,
        path="agents/{id}/memory-revisions",
        list=("list_revisions", _READ),
        further={"restore_memory_file": _CHANGE},
    ),
    # The request to decide is an approval of the kind `memory`.
    RestObject(
        model=MemoryEditRequest,
        path="approvals?kind=memory",
        list=("list_approvals", "owners of the runs, owners of the agents, and approvers"),
        read=("get_approval", "owners of the runs, owners of the agents, and approvers"),
        further={"decide_approval": "people who may decide it"},
        scope="approve",
    ),
]

urlpatterns = [
    path("agents/<agent_name:agent_id>/memory", Memory.as_view(), name="memory"),
    path(
        "agents/<agent_name:agent_id>/memory/<path:path>",
        OneMemoryFile.as_view(),
        name="memory-file",
    ),
    path(
        "agents/<agent_name:agent_id>/memory-revisions",
        MemoryRevisions.as_view(),
        name="memory-revisions",
    ),
    path(
        "agents/<agent_name:agent_id>/memory-purge",
        PurgeMemory.as_view(),
        name="memory-purge",
    ),
    path(
        "agents/<agent_name:agent_id>/memory-restore",
        RestoreMemory.as_view(),
        name="memory-restore",
    ),
]
