"""Views that accept uploads, with a size limit that applies before the form is read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadedfile import UploadedFile
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from agents.doors.rest.base import ApiView
from agents.settings import UploadSettings

FIELD = "file"


class UploadsView(ApiView):
    """A view for JSON or multipart forms with files, according to `parser_classes`."""

    form_bytes = 5_000_000
    """Bytes of a form in addition to its files. Messages have their own limit."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Before authentication: its CSRF check reads the whole form.
        length = request.META.get("CONTENT_LENGTH") or "0"
        limit = UploadSettings.now().UPLOAD_BYTES + self.form_bytes
        if not length.isdecimal() or int(length) > limit:
            raise RequestDataTooBig("The upload is larger than a thread takes.")
        super().initial(request, *args, **kwargs)


def is_form(request: Request) -> bool:
    """Return whether the body is a multipart form, not JSON."""
    return str(request.content_type).lower().startswith("multipart/form-data")


def files_of(
    request: Request, *, needed: bool, beside: Collection[str] = ()
) -> list[UploadedFile[Any]]:
    """Return the files of the field `file`.

    `beside` are the other fields that the form may have. Raises `ValidationError` for unknown
    fields, and if there is no file although one is `needed`.
    """
    files: list[UploadedFile[Any]] = request.FILES.getlist(FIELD)
    unknown = set(request.FILES) - {FIELD} | set(request.data) - {FIELD, *beside}
    if unknown or (needed and not files):
        raise ValidationError({FIELD: ["Send one file or several as `file`, and nothing unknown."]})
    return files
