"""Read a PDF file: its objects, pages and metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pdf_reader.errors import Encrypted, NotAPdf, PdfError
from pdf_reader.filters import decode
from pdf_reader.syntax import Name, Operator, Parser, Reference, Stream
from pdf_reader.text_strings import as_text
from pdf_reader.xref import Entry, find_objects, read_xref

MAX_PAGES = 20_000
MAX_OBJECTS_IN_STREAM = 100_000
_OBJECT = re.compile(rb"[\x00\t\n\x0c\r ]*(\d+)[\x00\t\n\x0c\r ]+(\d+)[\x00\t\n\x0c\r ]+obj")
_AFTER_STREAM = re.compile(rb"[\x00\t\n\x0c\r ]*endstream")
_INHERITED = ("Resources", "MediaBox", "Rotate")


class Document:
    """A PDF document that reads its objects on demand. `notes` lists repairs.

    Raises `NotAPdf`, and `Encrypted` after reading only the cross-references.
    """

    def __init__(self, data: bytes) -> None:
        start = data.find(b"%PDF-", 0, 4096)
        if start < 0:
            raise NotAPdf(_what_it_looks_like(data))
        self.data = data[start:] if start else data
        self.version = self.data[5:8].decode("latin-1").strip()
        self.notes: list[str] = []
        self._objects: dict[int, Any] = {}
        self._loading: set[int] = set()
        self._rebuilt = False
        try:
            self._entries, self.trailer = read_xref(self.data, self._parse_at)
        except (PdfError, ValueError, TypeError):
            self._rebuild()
        if "Encrypt" in self.trailer:
            raise Encrypted("The file is encrypted.")
        if not self._has_pages() and not self._rebuilt:
            self._rebuild()
        if "Encrypt" in self.trailer:
            raise Encrypted("The file is encrypted.")
        if not self._has_pages():
            raise NotAPdf("The file has no list of pages: it is damaged beyond reading.")

    def _has_pages(self) -> bool:
        return isinstance(self.get(self.catalog, "Pages"), dict)

    def _rebuild(self) -> None:
        """Search the file for objects, as viewers do if the table of objects is damaged."""
        self._rebuilt = True
        self.notes.append("Its table of objects is damaged; the objects were searched for.")
        self._objects.clear()
        self._entries, self.trailer = find_objects(self.data, self._parse_at)
        for number in list(self._entries):
            value = self.resolve(Reference(number, 0))
            if isinstance(value, Stream) and value.head.get("Type") == "ObjStm":
                for inner in self._numbers_in(value):
                    self._entries.setdefault(inner, Entry(in_stream=number))
        if not isinstance(self.resolve(self.trailer.get("Root")), dict):
            for number in list(self._entries):
                value = self.resolve(Reference(number, 0))
                if isinstance(value, dict) and value.get("Type") == "Catalog":
                    self.trailer["Root"] = Reference(number, 0)

    def resolve(self, value: Any) -> Any:
        """Return the target of a reference, or any other `value` unchanged.

        Missing or damaged objects are None, like null.
        """
        for _ in range(20):
            if not isinstance(value, Reference):
                return value
            value = self._load(value.number)
        return None

    def get(self, holder: Any, key: str, default: Any = None) -> Any:
        """Return the resolved entry `key` of a dictionary or of a stream's head."""
        head = holder.head if isinstance(holder, Stream) else holder
        value = self.resolve(head.get(key)) if isinstance(head, dict) else None
        return default if value is None else value

    def _load(self, number: int) -> Any:
        if number in self._objects:
            return self._objects[number]
        entry = self._entries.get(number)
        if entry is None or number in self._loading:
            return None
        self._loading.add(number)
        try:
            value = self._read(number, entry)
        except (PdfError, ValueError) as problem:
            self._note(f"Object {number} cannot be read: {problem}")
            value = None
        finally:
            self._loading.discard(number)
        self._objects[number] = value
        return value

    def _read(self, number: int, entry: Entry) -> Any:
        if entry.in_stream is not None:
            return self._read_packed(number, entry.in_stream)
        found = _OBJECT.match(self.data, entry.offset)
        if found is None or int(found[1]) != number:
            if self._rebuilt:
                return None
            self._rebuild()
            again = self._entries.get(number)
            return self._read(number, again) if again else None
        return self._parse_at(found.end())

    def _parse_at(self, position: int) -> Any:
        """Return the object at `position`, the position after `obj`."""
        parser = Parser(self.data, position)
        value = parser.next()
        if not isinstance(value, dict):
            return None if isinstance(value, Operator) else value
        after = parser.position
        if parser.next() != "stream":
            return value
        start = parser.position
        if self.data[start : start + 2] == b"\r\n":
            start += 2
        elif self.data[start : start + 1] in (b"\n", b"\r"):
            start += 1
        length = value.get("Length")
        if isinstance(length, Reference):
            length = self.resolve(length) if hasattr(self, "_entries") else None
        end = start + length if isinstance(length, int) and length >= 0 else -1
        if end < start or not _AFTER_STREAM.match(self.data, end):
            end = self.data.find(b"endstream", start)
            if end < 0:
                end = self.data.find(b"endobj", after)
            end = len(self.data) if end < 0 else end
        return Stream(value, self.data[start:end])

    def _read_packed(self, number: int, holder: int) -> Any:
        stream = self.resolve(Reference(holder, 0))
        if not isinstance(stream, Stream):
            return None
        content = self.decoded(stream)
        first = self.get(stream, "First", 0)
        for inner, offset in self._directory(stream, content).items():
            value = Parser(content, first + offset).next()
            if self._entries.get(inner, Entry()).in_stream == holder and inner != number:
                self._objects.setdefault(inner, value)
            elif inner == number:
                found = value
                self._objects[number] = found
        return self._objects.get(number)

    def _directory(self, stream: Stream, content: bytes) -> dict[int, int]:
        parser = Parser(content, references=False)
        count = min(self.get(stream, "N", 0), MAX_OBJECTS_IN_STREAM)
        listed = [parser.next() for _ in range(2 * count)]
        pairs = zip(listed[::2], listed[1::2], strict=True)
        return {n: at for n, at in pairs if isinstance(n, int) and isinstance(at, int)}

    def _numbers_in(self, stream: Stream) -> list[int]:
        try:
            return list(self._directory(stream, self.decoded(stream)))
        except PdfError:
            return []

    def decoded(self, stream: Stream) -> bytes:
        """Return the stream's bytes after all filters. Raises `PdfError` or `Unsupported`."""
        filters = _as_list(self.get(stream, "Filter", self.get(stream, "F")))
        given = _as_list(self.get(stream, "DecodeParms", self.get(stream, "DP")))
        given += [None] * (len(filters) - len(given))
        parameters = []
        for each in given[: len(filters)]:
            head = self.resolve(each)
            head = head if isinstance(head, dict) else {}
            parameters.append({key: self.resolve(value) for key, value in head.items()})
        return decode(stream.raw, [str(self.resolve(name)) for name in filters], parameters)

    def _note(self, words: str) -> None:
        if len(self.notes) < 20 and words not in self.notes:
            self.notes.append(words)

    @property
    def catalog(self) -> dict[str, Any]:
        root = self.resolve(self.trailer.get("Root"))
        return root if isinstance(root, dict) else {}

    @property
    def pages(self) -> list[dict[str, Any]]:
        """Return the pages in order, with inherited entries. A page may be damaged.

        Raises `PdfError` if there are too many pages.
        """
        if not hasattr(self, "_pages"):
            self._pages = list(self._walk(self.catalog.get("Pages"), {}, set()))
        return self._pages

    def _walk(
        self, node: Any, inherited: dict[str, Any], seen: set[int]
    ) -> Iterator[dict[str, Any]]:
        stack: list[tuple[Any, dict[str, Any]]] = [(node, inherited)]
        count = 0
        while stack:
            reference, above = stack.pop()
            if isinstance(reference, Reference):
                if reference.number in seen:
                    continue
                seen.add(reference.number)
            page = self.resolve(reference)
            if not isinstance(page, dict):
                self._note("A page is missing from the file.")
                continue
            passed = {**above, **{key: page[key] for key in _INHERITED if key in page}}
            kids = self.get(page, "Kids")
            if isinstance(kids, list) and page.get("Type") != "Page":
                stack.extend((kid, passed) for kid in reversed(kids))
                continue
            count += 1
            if count > MAX_PAGES:
                raise PdfError(f"The file has more than {MAX_PAGES:,} pages.")
            number = reference.number if isinstance(reference, Reference) else -1
            yield {**passed, **page, "_number": number}

    @property
    def information(self) -> dict[str, str]:
        """Return the metadata, such as Title and Author, as text."""
        info = self.resolve(self.trailer.get("Info"))
        found: dict[str, str] = {}
        for key, value in (info if isinstance(info, dict) else {}).items():
            value = self.resolve(value)
            if isinstance(value, (bytes, Name)):
                found[key] = as_text(value)
        return found


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _what_it_looks_like(data: bytes) -> str:
    known = [
        (b"PK\x03\x04", "a zip archive or an Office document"),
        (b"\x89PNG", "a PNG picture"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"<", "HTML or XML"),
        (b"{\\rtf", "an RTF document"),
        (b"\xd0\xcf\x11\xe0", "an old Office document"),
    ]
    if not data:
        return "The file is empty."
    kind = next((words for start, words in known if data.lstrip().startswith(start)), "")
    return "The file is not a PDF: it does not start with %PDF-" + (
        f"; it looks like {kind}." if kind else "."
    )
