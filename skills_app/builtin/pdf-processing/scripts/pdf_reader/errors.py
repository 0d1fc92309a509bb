"""What can be wrong with a file. Each message says what to do."""

from __future__ import annotations


class PdfError(Exception):
    """Base. `exit_code` is the script's."""

    exit_code = 3


class NotAPdf(PdfError):
    """Something else, or too little of one to find a page."""


class Encrypted(PdfError):
    """The password, or what could use it, is missing."""

    exit_code = 4


class Unsupported(PdfError):
    """A filter that no text passes through, such as JPEG."""
