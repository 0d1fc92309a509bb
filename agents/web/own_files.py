"""Addresses of a run's own files that are named in its texts."""

from __future__ import annotations

import posixpath
from urllib.parse import quote, unquote, urlsplit

from django.urls import reverse

from agents.models import Run
from agents.services.files.shown_pictures import is_shown
from agents.web.files import OUTPUTS


class OwnFiles:
    """The deliverables of one run. Does not check that a file exists; the download does."""

    def __init__(self, run: Run) -> None:
        self._top = OUTPUTS if run.spec["sandbox"] else "/"
        self._file = reverse("web:run-file", args=[run.pk, "-"]).removesuffix("-")
        self._picture = reverse("web:run-picture", args=[run.pk, "-"]).removesuffix("-")

    def download(self, named: str) -> str | None:
        path = self._path(named)
        return self._file + quote(path) if path else None

    def picture(self, named: str) -> str | None:
        path = self._path(named)
        return self._picture + quote(path) if path and is_shown(path) else None

    def _path(self, named: str) -> str | None:
        """Return the path below the deliverables. `named` is relative or absolute."""
        try:
            parts = urlsplit(named.removeprefix("sandbox:"))
        except ValueError:
            return None
        path = unquote(parts.path)
        if parts.scheme or parts.netloc or not path or path.endswith("/") or not path.isprintable():
            return None
        base = self._top if not path.startswith(("outputs/", "./outputs/")) else "/sandbox"
        full = posixpath.normpath(posixpath.join(base, path))
        inside = full.removeprefix(self._top.rstrip("/") + "/")
        return inside if inside != full and inside else None
