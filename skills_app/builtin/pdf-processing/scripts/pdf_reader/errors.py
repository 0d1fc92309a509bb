"""Errors of the reader about a file."""

from __future__ import annotations


class PdfError(Exception):
    """The base class. `exit_code` is the exit code of the script."""

    exit_code = 3


class NotAPdf(PdfError):
    """The file is not a PDF, or too damaged to find a page."""


class Encrypted(PdfError):
    """The file is encrypted, and the password or a package that can use it is missing."""

    exit_code = 4


class Unsupported(PdfError):
    """A stream has a filter that contains no text, for example JPEG, or that is not supported."""
