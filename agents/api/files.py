"""Endpoints for a thread's files: list, download, upload, changes and restore."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.serializers.files import (
    ChangedFilesShape,
    ChangesPageQuery,
    ChangesQuery,
    ContentQuery,
    FileEntriesShape,
    FilesQuery,
    RestoreBody,
    RestoredShape,
    StepShape,
    UploadedShape,
    UploadsForm,
    show_changed_file,
    show_step,
)
from agents.api.serializers.runs import StoredUploadsShape, show_uploads
from agents.doors.downloads import attachment
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.forms import UploadsView, files_of
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import IDEMPOTENCY_KEY, Content, OneOf, Page, operation
from agents.doors.rest.pagination import page_of
from agents.doors.rest.serializers import PageQuery, read_body, read_query
from agents.doors.rest.streaming import take_slot
from agents.models import Thread, TokenScope, Upload, WorkspaceSnapshot
from agents.selectors.visible import family_threads_for, threads_for
from agents.services.errors import Conflict, NotFound
from agents.services.files.changes import changes_between, shown_path, steps_of_turn
from agents.services.files.restoring import restore_workspace
from agents.services.files.thread_files import has_workspace, readable_files
from agents.services.files.uploads import delete_upload, store_uploads
from sandbox.backends.limits import FileLimits, WalkLimit
from sandbox.errors import FileError, SandboxError

MAX_FILES = 1_000
LIMITS = FileLimits(search_entries=5_000, search_seconds=2.0)


class Files(UploadsView):
    """The endpoints `GET /threads/{id}/files?path=` and `POST /threads/{id}/files`.

    POST is a multipart form with one or more fields `file`.
    """

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.RUN}
    parser_classes = (MultiPartParser,)  # type: ignore[assignment]  # a form, not JSON
    form_bytes = 1_000_000

    @operation("list_files", "List files", query=FilesQuery, answer=FileEntriesShape)
    def get(self, request: Request, thread_id: str) -> Response:
        query = read_query(FilesQuery, request)
        thread = thread_of(person(request), thread_id)
        backend = readable_files(thread, in_workspace=has_workspace(thread))
        walk_limit = WalkLimit(LIMITS)
        found: list[dict[str, Any]] = []
        try:
            top = backend.resolve(query["path"]) if query.get("path") else "/"
            for entry in backend.walk(top, walk_limit):
                if entry.type == "directory" or not entry.addressable:
                    continue
                if len(found) == MAX_FILES:
                    walk_limit.cut_short("too many files")
                    break
                stat = backend.stat(entry.path) if entry.type == "file" else None
                size = stat.size if stat else None
                found.append({"path": entry.path, "type": entry.type, "size": size})
        except FileError as error:
            if query.get("path"):
                raise NotFound(str(error), code="unknown_file") from error
        return Response({"results": found, "truncated": walk_limit.cut is not None})

    @operation(
        "upload_files",
        "Upload files",
        form=UploadsForm,
        answers={201: UploadedShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY,),
    )
    @idempotent
    def post(self, request: Request, thread_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        files = request.FILES.getlist("file")
        if not files or set(request.data) - {"file"}:
            raise ValidationError(
                {"file": ["Expected one or more files in the field `file` and no other fields."]}
            )
        try:
            stored = store_uploads(thread, files)
        except SandboxError as error:
            raise Conflict(str(error), code="upload_failed") from error
        shown = [{"path": upload.path, "size": upload.size} for upload in stored]
        return Response({"results": shown}, status=201)


class FileContent(ApiView):
    """The endpoint `GET /threads/{id}/files/content?path=`: the bytes, as an attachment.

    It also serves the thread of a subagent. `GET /runs/{id}/artifacts` lists its files.
    """

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("download_file", "Download a file", query=ContentQuery, answer=Content())
    def get(self, request: Request, thread_id: str) -> StreamingHttpResponse:
        query = read_query(ContentQuery, request)
        thread = _found(family_threads_for(person(request)), thread_id)
        backend = readable_files(thread, in_workspace=has_workspace(thread))
        place = take_slot(request, kind="")
        try:
            path = backend.resolve(query["path"])
            return attachment(backend.open_file(path), path, place)
        except FileError as error:
            raise NotFound(str(error), code="unknown_file") from error


class Changes(ApiView):
    """The endpoint `GET /threads/{id}/changes`: the steps, or the files of a step or turn."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_changes",
        "List the steps that changed files, or the files that a step or a turn changed",
        query=ChangesPageQuery,
        answer=OneOf((ChangedFilesShape,), (Page(StepShape),)),
    )
    def get(self, request: Request, thread_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        if {"run", "step"}.isdisjoint(request.query_params):
            page = read_query(PageQuery, request)
            rows = WorkspaceSnapshot.objects.filter(thread=thread)
            return page_of(
                rows,
                show_step,
                by="id",
                descending=True,
                cursor=page.get("cursor"),
                limit=page["limit"],
            )
        base, manifest = states_of(thread, read_query(ChangesQuery, request))
        changes = changes_between(thread.pk, base, manifest)
        return Response(
            {"results": [show_changed_file(file) for file in changes.files], "total": changes.total}
        )


class Restore(ApiView):
    """The endpoint `POST /threads/{id}/restore`: to the state before or after a turn or a step."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "restore_files", "Restore files", body=RestoreBody, answer=RestoredShape, errors=(409,)
    )
    def post(self, request: Request, thread_id: str) -> Response:
        user = person(request)
        thread = thread_of(user, thread_id)
        body = read_body(RestoreBody, request)
        before, after = states_of(thread, body)
        done = restore_workspace(thread, before if body["to"] == "before" else after, by=user)
        return Response(
            {
                "written": done.written,
                "deleted": done.deleted,
                "failed": [
                    {"path": shown_path(path), "reason": reason} for path, reason in done.failed
                ],
            }
        )


def thread_of(user: AbstractBaseUser, thread_id: str) -> Thread:
    """Return a thread of `user`. Raises `NotFound` for threads of others."""
    return _found(threads_for(user), thread_id)


def _found(threads: QuerySet[Thread], thread_id: str) -> Thread:
    thread = threads.filter(pk=thread_id).first()
    if thread is None:
        raise NotFound(f"You have no thread {thread_id!r}.", code="unknown_thread")
    return thread


def states_of(thread: Thread, asked: dict[str, Any]) -> tuple[str, str]:
    if "turn" in asked:
        return steps_of_turn(thread.pk, asked["run"], asked["turn"])
    row = WorkspaceSnapshot.objects.filter(thread=thread, pk=asked["step"]).first()
    if row is None:
        raise NotFound("This thread has no such step.", code="unknown_snapshot")
    return row.base, row.manifest


class Uploads(UploadsView):
    """The endpoints `GET /threads/{id}/uploads` and `POST /threads/{id}/uploads`.

    POST is a multipart form with one or more fields `file`.
    """

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.RUN}
    parser_classes = (MultiPartParser,)  # type: ignore[assignment]  # a form, not JSON

    @operation("list_uploads", "List the uploads of a thread", answer=StoredUploadsShape)
    def get(self, request: Request, thread_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        rows = Upload.objects.filter(thread=thread)
        return Response(show_uploads(rows))

    @operation(
        "add_uploads",
        "Upload files for the next message",
        form=UploadsForm,
        answers={201: StoredUploadsShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY,),
    )
    @idempotent
    def post(self, request: Request, thread_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        files = files_of(request, needed=True)
        try:
            stored = store_uploads(thread, files)
        except SandboxError as error:
            raise Conflict(str(error), code="upload_failed") from error
        return Response(show_uploads(stored), status=201)


class OneUpload(ApiView):
    """The endpoint `DELETE /threads/{id}/uploads/{upload}`."""

    scopes: ClassVar = {"DELETE": TokenScope.RUN}

    @operation("delete_upload", "Delete an upload", answers={204: None}, errors=(409,))
    def delete(self, request: Request, thread_id: str, upload_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        try:
            delete_upload(thread, upload_id)
        except SandboxError as error:
            raise Conflict(str(error), code="upload_failed") from error
        return Response(status=204)
