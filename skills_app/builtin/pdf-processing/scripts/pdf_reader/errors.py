"""Errors about a file."""

from __future__ import annotations


class PdfError(Exception):
    """Base class. `exit_code` is that of the script."""

    exit_code = 3


class NotAPdf(PdfError):
    """Not a PDF, or too damaged to find a page."""


class Encrypted(PdfError):
    """The password, or a package that can use it, is missing."""

    exit_code = 4


class Unsupported(PdfError):
    """A filter that contains no text, such as JPEG."""
