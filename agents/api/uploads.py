"""Endpoints for files that people attach to the messages of a thread."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.files import thread_of
from agents.api.serializers.file_shapes import UploadsForm
from agents.api.serializers.uploads import StoredUploadsShape, show_uploads
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.forms import UploadsView, files_of
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import IDEMPOTENCY_KEY, operation
from agents.models import TokenScope, Upload
from agents.services.errors import Conflict
from agents.services.files.uploads import delete_upload, store_uploads
from sandbox.errors import SandboxError


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
        "Upload files, of which the next message tells",
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
