"""Views that receive a package: their size limit applies before the body is read."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from agents.doors.rest.base import ApiView
from agents.doors.rest.serializers import StrictSerializer, read_body
from agents.doors.rest.wire import StrictJSONParser
from skills_app.actions.uploads import InvalidPackage, PackageTooLarge, read_upload
from skills_app.api.serializers import problems_of
from skills_app.library.package import Package
from skills_app.settings import SkillSettings

FORM_BYTES = 100_000
"""The limit for the parts of a form that are not the file."""


class UploadView(ApiView):
    """Accepts JSON, and multipart forms whose `file` is a package."""

    parser_classes = (StrictJSONParser, MultiPartParser)  # type: ignore[assignment]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Before authentication, which looks for a CSRF token in the form and so reads all of it.
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length) > SkillSettings.now().ARCHIVE_BYTES + FORM_BYTES:
            raise RequestDataTooBig("The upload is larger than a package may be.")
        super().initial(request, *args, **kwargs)


def is_form(request: Request) -> bool:
    """Return whether the body is a multipart form, not JSON."""
    return str(request.content_type).lower().startswith("multipart/form-data")


def read_form(kind: type[StrictSerializer], request: Request) -> tuple[Package, dict[str, Any]]:
    """Return (the package in `file`, the other fields). Raises `ValidationError`."""
    form = read_body(kind, request)
    try:
        return read_upload(form.pop("file")), form
    except PackageTooLarge as error:
        raise RequestDataTooBig(error.message) from None
    except InvalidPackage as error:
        raise problems_of(error) from None
