"""Requests, for every provider. Each server refuses invalid requests as its real one does."""

from __future__ import annotations

import base64
import itertools
import json

import pytest

from agents.providers.base import Block, Conversation, Role
from agents.providers.google.conversation import ANY_SIGNATURE
from tests.agents.providers.contract.asking import (
    Talk,
    answer,
    calls_of,
    dump,
    head_for,
    result,
    say,
    text,
)
from tests.agents.providers.contract.wires import WIRES, Wire
from tests.support.messages_script import ToolUse, Turn
from tests.support.pictures import png

PICTURE: Block = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(png(3, 2)).decode(),
    },
}
CALLING = Turn("I look.", [ToolUse("ls", {"path": "/a"}), ToolUse("now")], thinking="Where?")


def body_of(conversation: Conversation) -> bytes:
    body: bytes = conversation.body()  # type: ignore[attr-defined]
    return body


def test_results_follow_their_calls(wire: Wire) -> None:
    with Talk(wire, [CALLING, CALLING, Turn("Done.")]) as talk:
        for _ in range(2):
            ids = [call["id"] for call in calls_of(talk.ask(text("Look")))]
            say(talk.conversation, *(result(call_id, f"of {call_id}") for call_id in ids))
        assert talk.ask().stop_reason == "end_turn"
        sent = talk.server.requests[-1].body.decode()
        assert all(f"of {call_id}" in sent for call_id in ids)


def test_consecutive_user_messages_are_one_turn(wire: Wire) -> None:
    with Talk(wire, [Turn("Yes?"), CALLING, Turn("Done.")]) as talk:
        say(talk.conversation, text("First."))
        say(talk.conversation, PICTURE, text("Second."))
        say(talk.conversation, text("Third."))
        talk.ask()
        ids = [call["id"] for call in calls_of(talk.ask(text("Look")))]
        say(talk.conversation, *map(result, ids))
        say(talk.conversation, text("A note."))
        talk.ask()


def test_pictures_are_shown_and_so_are_those_of_results(wire: Wire) -> None:
    with Talk(wire, [CALLING, Turn("A dot.")]) as talk:
        ids = [call["id"] for call in calls_of(talk.ask(text("Look at this"), PICTURE))]
        say(talk.conversation, result(ids[0], [text("here:"), PICTURE]), result(ids[1], [PICTURE]))
        talk.ask()
        sent = talk.server.requests[-1].body
        assert sent.count(PICTURE["source"]["data"].encode()) == 3


def test_an_error_is_sent_as_an_error(wire: Wire) -> None:
    with Talk(wire, [CALLING, Turn("Oh.")]) as talk:
        ids = [call["id"] for call in calls_of(talk.ask(text("Look")))]
        say(talk.conversation, result(ids[0], "no such file", is_error=True), result(ids[1], []))
        talk.ask()
        sent = talk.server.requests[-1].body.decode()
    words = ('"is_error":true', "Error:\\nno such file", '"error":"no such file"')
    assert any(each in sent for each in words)


def test_thoughts_go_back_unchanged(wire: Wire) -> None:
    with Talk(wire, [CALLING, Turn("Done.", thinking="So."), Turn("Bye.")]) as talk:
        ids = [call["id"] for call in calls_of(talk.ask(text("Look")))]
        say(talk.conversation, *map(result, ids))
        talk.ask()
        talk.ask(text("Thanks"))
        sent = talk.server.requests[-1].body.decode()
    assert "Where?" in sent
    assert '"So."' in sent


def test_thoughts_without_anything_after_them_have_no_place(wire: Wire) -> None:
    """The token limit has cut the reply off during the thinking."""
    with Talk(wire, [Turn(thinking="Hm", stop_reason="max_tokens"), Turn("Yes.")]) as talk:
        reply = talk.ask(text("Think"))
        assert [block["type"] for block in reply.blocks] == ["thinking"]
        if wire.name == "anthropic":
            return  # which accepts them
        say(talk.conversation, text("Go on"))
        talk.ask()


@pytest.mark.parametrize("other", WIRES, ids=str)
def test_nothing_opaque_of_another_api_is_sent(wire: Wire, other: Wire) -> None:
    """The history omits thinking blocks of earlier epochs; the provider drops any that remain."""
    if other.provider is wire.provider:
        pytest.skip("not applicable: both are the same API")
    with Talk(other, [CALLING]) as talk:
        reply = talk.ask(text("Look"))
    if other.name == "anthropic":  # its blocks have no mark of the API
        assert all("origin" not in block for block in reply.blocks)
    with Talk(wire, [Turn("Done.")]) as talk:
        say(talk.conversation, text("Look"))
        answer(talk.conversation, reply)
        say(talk.conversation, *(result(call["id"]) for call in calls_of(reply)))
        talk.ask()
        sent = talk.server.requests[-1].body.decode()
    assert "Where?" not in sent
    assert "encrypted" not in sent.replace("reasoning.encrypted_content", "")
    assert "signature" not in sent.replace(ANY_SIGNATURE, "")
    assert '"origin"' not in sent


def test_ids_of_other_apis_are_taken(wire: Wire) -> None:
    ids = ["toolu_01A09q90qw90lq917835lq9", "call_" + "x" * 50]
    if wire.name != "anthropic":
        ids += ["functions.ls:0", "y" * 190]
    uses = [{"type": "tool_use", "id": each, "name": "ls", "input": {}} for each in ids]
    with Talk(wire, [Turn("Done.")]) as talk:
        say(talk.conversation, text("Look"))
        talk.conversation.append("assistant", dump(uses))
        say(talk.conversation, *map(result, ids))
        talk.ask()


def test_the_prompt_s_prefix_stays_byte_for_byte(wire: Wire) -> None:
    """Invariant 5: each request starts with the previous one, except for the closing part."""
    with Talk(wire, [CALLING, CALLING, Turn("Done."), Turn("Bye.")]) as talk:
        for words in ("Look", "Again"):
            ids = [call["id"] for call in calls_of(talk.ask(text(words)))]
            say(talk.conversation, *map(result, ids))
        talk.ask()
        talk.ask(text("Thanks"))
        bodies = [_bare(request.body) for request in talk.server.requests]
    assert len(bodies) == 4
    for before, after in itertools.pairwise(bodies):
        assert after.startswith(before.rstrip(b']}"'))


def test_a_reloaded_conversation_is_the_same(wire: Wire) -> None:
    """Another process makes the same bytes from the same rows."""
    rows: list[tuple[Role, str]] = []
    with Talk(wire, [CALLING, Turn("Done.", thinking="So.")]) as talk:
        for blocks in ([text("Look"), PICTURE], [text("Quick\nly é")]):
            rows.append(("user", dump(blocks)))
            talk.conversation.append(*rows[-1])
        for _ in range(2):
            reply = talk.ask()
            rows.append(("assistant", dump(reply.blocks)))
            if calls := calls_of(reply):
                rows.append(("user", dump([result(call["id"]) for call in calls])))
                talk.conversation.append(*rows[-1])
        again = talk.provider.conversation(talk.head)
        for role, blocks_json in rows:
            again.append(role, blocks_json)
        assert body_of(again) == body_of(talk.conversation)
        assert again.size == talk.conversation.size


def test_the_size_is_at_least_the_bytes_without_pictures(wire: Wire) -> None:
    with Talk(wire, []) as talk:
        say(talk.conversation, text("word " * 1000))
        assert talk.conversation.size >= len(_bare(body_of(talk.conversation))) - 10
        before = talk.conversation.size
        large = {"type": "image", "source": {**PICTURE["source"], "data": "A" * 400_000}}
        say(talk.conversation, large)
        assert talk.conversation.size - before < 10_000


@pytest.mark.parametrize("rows", ["[]", "", "{}", "nonsense", '[{"type":"text","text":"a"}'])
def test_content_that_is_not_an_array_of_blocks_is_refused_and_adds_nothing(
    wire: Wire, rows: str
) -> None:
    with Talk(wire, []) as talk:
        before = body_of(talk.conversation)
        with pytest.raises(ValueError):  # noqa: PT011 -- any message
            talk.conversation.append("user", rows)
        assert body_of(talk.conversation) == before


def test_a_prompt_without_system_and_tools(wire: Wire) -> None:
    with Talk(wire, [Turn("Yes.")], head_for(wire, system="", tools=())) as talk:
        talk.ask(text("Hello"))


@pytest.mark.parametrize("effort", [None, "high"])
@pytest.mark.parametrize("kind", ["adaptive", "disabled"])
def test_how_hard_to_think_is_passed_on(wire: Wire, kind: str, effort: str | None) -> None:
    thinking: Block = {"type": kind} | ({"display": "summarized"} if kind == "adaptive" else {})
    with Talk(wire, [Turn("Yes.")], head_for(wire, thinking=thinking, effort=effort)) as talk:
        talk.ask(text("Hello"))
        sent = json.loads(talk.server.requests[0].body)
    assert (effort or "") in json.dumps(sent)


def _bare(body: bytes) -> bytes:
    """Return the request without cache marks, which move."""
    return body.replace(b',"cache_control":{"type":"ephemeral"}', b"")
