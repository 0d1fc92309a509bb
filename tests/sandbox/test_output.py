"""The kept part of a stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.cancellation import Cancellation
from sandbox.output import CapturedStream


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(2, 500))
def test_a_stream_keeps_its_ends_and_counts_the_rest(pieces: list[bytes], limit: int) -> None:
    stream = CapturedStream(limit)
    for piece in pieces:
        stream.feed(piece)
    whole = b"".join(pieces)
    assert stream.total == len(whole)
    assert stream.cut == max(0, len(whole) - limit)
    if not stream.cut:
        assert stream.text() == whole.decode("utf-8", "replace")
    else:
        assert f"[... {stream.cut:,} bytes of output cut here ...]" in stream.text()


@pytest.mark.parametrize("offset", range(4))
def test_a_cut_does_not_split_a_character(offset: int) -> None:
    stream = CapturedStream(1000)
    stream.feed(b"x" * offset + "🎉".encode() * 1000)
    assert "\ufffd" not in stream.text()


def test_a_flood_in_small_pieces_stays_bounded() -> None:
    stream = CapturedStream(1000)
    for _ in range(20_000):
        stream.feed(b"line of output\n")
    assert len(stream._head) + len(stream._tail) < 1000 + 2 * 65536
    assert stream.text().endswith("line of output\n")


def test_a_cancellation_calls_back_once_and_immediately_if_it_is_late() -> None:
    cancel = Cancellation()
    calls: list[str] = []
    cancel.on_cancel(lambda: calls.append("early"))
    forget = cancel.on_cancel(lambda: calls.append("forgotten"))
    forget()
    cancel.cancel()
    cancel.cancel()
    cancel.on_cancel(lambda: calls.append("late"))
    assert calls == ["early", "late"]
    assert cancel.cancelled
