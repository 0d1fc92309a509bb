"""The characters that are invisible, or that change the visible order of text."""

from __future__ import annotations

# Controls except tab and line feed, direction marks, zero-width and blank letters, tags,
# supplementary variation selectors, and lone surrogates, which JSON may contain.
HIDDEN_RANGES = (
    (0x00, 0x08),
    (0x0B, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE01EF),
)

HIDDEN = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in HIDDEN_RANGES)
"""The ranges for a character class in a regular expression."""
