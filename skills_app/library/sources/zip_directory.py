"""Read the central directory of a zip archive and compare it with the rest of the archive.

Readers of zip files disagree about archives that contradict themselves, so one program may show a
reviewer other files than another program unpacks. Here every byte must belong to one entry, and the
two descriptions of each entry must agree.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from skills_app.library.problems import InvalidSkill

STORED, DEFLATED = 0, 8

_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_END_MARK, _ENTRY_MARK, _LOCAL_MARK = b"PK\5\6", b"PK\1\2", b"PK\3\4"
_DESCRIPTOR_MARK = b"PK\7\x08"
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_DESCRIPTOR = 0x0008
_UTF8 = 0x0800
_ZIP64, _UNICODE_PATH = 0x0001, 0x7075
_NARROW, _WIDE = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One entry of an archive.

    Its packed bytes start at `begin` and are `packed` bytes long. `mode` is the Unix mode, 0 if
    unknown.
    """

    name: str
    method: int
    crc: int
    begin: int
    packed: int
    size: int
    mode: int

    @property
    def is_directory(self) -> bool:
        return self.name.endswith("/")


@dataclass(frozen=True, slots=True)
class _Record:
    """An entry in the central directory."""

    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    mode: int
    local: int
    extra: bytes


def read_entries(data: bytes, limit: int) -> list[ZipEntry]:
    """Return the entries of the archive `data`, in the order of their bytes.

    Raises `InvalidSkill` unless `data` is a complete zip archive without oddities and with at most
    `limit` entries.
    """
    count, size, begin, end = _find_end(data)
    if count > limit:
        raise InvalidSkill(f"The archive has more than {limit:,} entries: leave some out.")
    records, at = [], begin
    for _ in range(count):
        record, at = _read_record(data, at, end)
        records.append(record)
    if at != end or begin + size != end:
        raise _damaged("its directory does not end where it should")
    entries, free = [], 0
    for record in sorted(records, key=lambda record: record.local):
        entry, free = _read_local(data, record, free, begin)
        entries.append(entry)
    if free != begin:
        raise _damaged("there are bytes that belong to no entry")
    return entries


def _find_end(data: bytes) -> tuple[int, int, int, int]:
    """Return (number of entries, size of the central directory, its start, its end), in bytes."""
    found = []
    at = data.rfind(_END_MARK)
    while at >= max(0, len(data) - _END.size - _NARROW):
        if at + _END.size <= len(data):
            fields = _END.unpack_from(data, at)
            if at + _END.size + fields[7] == len(data):
                found.append((at, fields))
        at = data.rfind(_END_MARK, 0, at)
    if not found:
        raise _damaged("its end is missing, or something follows it")
    if len(found) > 1:
        raise _damaged("it has two ends")
    at, (_, disk, first_disk, here, count, size, begin, _) = found[0]
    if _NARROW in (here, count, disk) or _WIDE in (size, begin):
        raise InvalidSkill("The archive is in the zip64 format: pack it without (it is small).")
    if disk or first_disk or here != count:
        raise InvalidSkill("The archive is one part of several: pack it as one file.")
    if begin + size != at:
        raise _damaged("its directory is not where its end says")
    return count, size, begin, at


def _read_record(data: bytes, at: int, end: int) -> tuple[_Record, int]:
    if at + _ENTRY.size > end:
        raise _damaged("its directory is cut off")
    fields = _ENTRY.unpack_from(data, at)
    mark, _made_by, _needed, flags, method, _time, _date, crc, packed, size = fields[:10]
    name_size, extra_size, comment_size, disk, _internal, external, local = fields[10:]
    name_end = at + _ENTRY.size + name_size
    after = name_end + extra_size + comment_size
    if mark != _ENTRY_MARK or after > end or disk:
        raise _damaged("its directory cannot be read")
    raw_name = data[at + _ENTRY.size : name_end]
    extra = data[name_end : name_end + extra_size]
    if _WIDE in (packed, size, local):
        raise InvalidSkill("The archive is in the zip64 format: pack it without (it is small).")
    mode = external >> 16
    return _Record(raw_name, flags, method, crc, packed, size, mode, local, extra), after


def _read_local(data: bytes, record: _Record, free: int, end: int) -> tuple[ZipEntry, int]:
    """Return (the entry of `record`, the start of the next entry).

    The entry must start at `free` and end before `end`.
    """
    name = _name_of(record)
    if record.local < free:
        raise _damaged(f"{name!a} overlaps another entry")
    if record.local > free or record.local + _LOCAL.size > end:
        raise _damaged(f"{name!a} is not where the directory says")
    fields = _LOCAL.unpack_from(data, record.local)
    mark, _needed, flags, method, _time, _date, crc, packed, size, name_size, extra_size = fields
    name_begin = record.local + _LOCAL.size
    begin = name_begin + name_size + extra_size
    after = begin + record.packed
    if mark != _LOCAL_MARK or after > end:
        raise _damaged(f"{name!a} is cut off")
    if record.flags & _ENCRYPTED or flags & _ENCRYPTED:
        raise InvalidSkill(f"{name!a} is encrypted: pack it without a password.")
    if record.method not in (STORED, DEFLATED):
        raise InvalidSkill(
            f"{name!a} is compressed in an unusual way (method {record.method}): pack it with "
            "deflate, as zip does."
        )
    said = (data[name_begin : name_begin + name_size], method, flags & (_DESCRIPTOR | _UTF8))
    meant = (record.raw_name, record.method, record.flags & (_DESCRIPTOR | _UTF8))
    local_extra = data[name_begin + name_size : begin]
    sizes = (crc, *_wide_sizes(packed, size, local_extra))
    wanted = (record.crc, record.packed, record.size)
    later = bool(flags & _DESCRIPTOR)
    if said != meant or (sizes != wanted and not (later and _unsaid(sizes, wanted))):
        raise _damaged(f"{name!a} contradicts the directory")
    _require_one_name(record.raw_name, name, local_extra)
    if later:
        after = _after_descriptor(data, record, after, end)
    entry = ZipEntry(
        name, record.method, record.crc, begin, record.packed, record.size, record.mode
    )
    return entry, after


def _unsaid(sizes: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether each size in a local header is right, or 0 because a descriptor follows."""
    return all(said in (0, meant) for said, meant in zip(sizes, wanted, strict=True))


def _after_descriptor(data: bytes, record: _Record, at: int, end: int) -> int:
    """Return the end of the descriptor after an entry whose local header has no sizes."""
    for layout in ("<3L", "<LQQ"):
        plain = struct.pack(layout, record.crc, record.packed, record.size)
        for descriptor in (_DESCRIPTOR_MARK + plain, plain):
            if data[at : at + len(descriptor)] == descriptor and at + len(descriptor) <= end:
                return at + len(descriptor)
    raise _damaged("the sizes after an entry are not those in the directory")


def _wide_sizes(packed: int, size: int, extra: bytes) -> tuple[int, int]:
    """Return the sizes (packed, unpacked) from a local header.

    Programs that write to a pipe leave room for large sizes and put them in `extra`.
    """
    if _WIDE not in (packed, size):
        return packed, size
    wide = _extra_fields(extra).get(_ZIP64, b"")
    if len(wide) != 16 or packed != size:
        raise _damaged("an entry's sizes cannot be read")
    size, packed = struct.unpack("<QQ", wide)
    return packed, size


def _name_of(record: _Record) -> str:
    try:
        name = record.raw_name.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidSkill(
            f"The archive contains the name {ascii(record.raw_name)[2:-1]}, which is not UTF-8: "
            "rename the file."
        ) from None
    _require_one_name(record.raw_name, name, record.extra)
    return name


def _require_one_name(raw_name: bytes, name: str, extra: bytes) -> None:
    """Raise `InvalidSkill` if `extra` has another name for the entry, which some readers prefer."""
    other = _extra_fields(extra).get(_UNICODE_PATH)
    if other is not None and other[5:] != raw_name:
        raise _damaged(f"{name!a} has a second name")


def _extra_fields(extra: bytes) -> dict[int, bytes]:
    """Return the extra fields by their number. Padding that is not a field is ignored."""
    fields: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(extra):
        number, size = struct.unpack_from("<HH", extra, at)
        if number in fields and number in (_ZIP64, _UNICODE_PATH):
            raise _damaged("an entry has a field twice")
        fields[number] = extra[at + 4 : at + 4 + size]
        at += 4 + size
    return fields


def _damaged(reason: str) -> InvalidSkill:
    return InvalidSkill(f"The archive is damaged or made to deceive: {reason}. Pack it again.")
