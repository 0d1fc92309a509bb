"""The offline model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agents.providers.base import PartDelta, PartStarted, PromptHead, ProviderError, Reply
from agents.providers.prices import cost
from agents.providers.scripted import FILES_REFUSED, ScriptedProvider
from agents.providers.scripts.base import ENDED, Message, Script, ScriptTurn
from tests.agents.providers.calls import add, add_results, events_of, reply_of, said

TWO_STEPS = Script(
    [
        ScriptTurn("First I look.", [("ls", {"path": "/"}), ("ls", {"path": "/a"})]),
        ScriptTurn("", [("read_file", {"path": "/a/b"})]),
        ScriptTurn("All done."),
    ]
)


def head(model: str = "two-steps") -> PromptHead:
    return PromptHead(model=model, system="You are a careful clerk.")


def play(
    provider: ScriptedProvider, model: str, requests: list[str], *, restart: bool = False
) -> list[Reply]:
    """Return all replies to these requests; with `restart` a new process makes each call."""

    async def loop() -> list[Reply]:
        conversation = provider.conversation(head(model))
        replies: list[Reply] = []
        for request in requests:
            conversation.append("user", said(request))
            while not replies or replies[-1].stop_reason == "tool_use" or request:
                request = ""
                if restart:
                    history = conversation.messages
                    conversation = provider.conversation(head(model))
                    for message in history:
                        conversation.append(message["role"], json.dumps(message["content"]))
                reply = await reply_of(provider, conversation)
                replies.append(reply)
                if reply.stop_reason == "tool_use":
                    add_results(conversation, reply)
                else:
                    add(conversation, "assistant", *reply.blocks)
        return replies

    return asyncio.run(loop())


def test_a_script_restarts_for_every_request() -> None:
    provider = ScriptedProvider({"two-steps": TWO_STEPS})
    replies = play(provider, "two-steps", ["Go", "Again"])
    assert [reply.stop_reason for reply in replies] == ["tool_use", "tool_use", "end_turn"] * 2
    assert replies[2].blocks == [{"type": "text", "text": "All done."}]
    ids = [block["id"] for reply in replies for block in reply.blocks if "id" in block]
    assert len(ids) == len(set(ids)) == 6


def test_an_interrupted_run_continues_at_its_position() -> None:
    provider = ScriptedProvider({"two-steps": TWO_STEPS})
    assert play(provider, "two-steps", ["Go", "Again"], restart=True) == play(
        provider, "two-steps", ["Go", "Again"]
    )


def test_a_note_after_tool_results_does_not_restart_the_script() -> None:
    async def loop() -> Reply:
        provider = ScriptedProvider({"two-steps": TWO_STEPS})
        conversation = provider.conversation(head())
        conversation.append("user", said("Go"))
        for _ in range(2):
            add_results(conversation, await reply_of(provider, conversation))
            conversation.append("user", said("A skill has changed."))
        return await reply_of(provider, conversation)

    assert asyncio.run(loop()).blocks[0]["text"] == "All done."


def test_an_ended_script_is_reported_and_does_not_fail_the_run() -> None:
    provider = ScriptedProvider({"short": Script([ScriptTurn("", [("ls", {})])])})
    last = play(provider, "short", ["Go"])[-1]
    assert last.blocks == [{"type": "text", "text": ENDED}]
    assert last.stop_reason == "end_turn"


def test_a_reply_streams_in_pieces() -> None:
    provider = ScriptedProvider({"two-steps": TWO_STEPS})
    conversation = provider.conversation(head())
    conversation.append("user", said("Go"))
    *parts, reply = asyncio.run(events_of(provider, conversation))
    assert isinstance(reply, Reply)
    texts = [part for part in parts if isinstance(part, PartDelta) and part.kind == "text"]
    assert len(texts) > 2
    assert "".join(part.text for part in texts) == "First I look."
    started = [part for part in parts if isinstance(part, PartStarted)]
    assert [(part.index, part.tool, part.call_id) for part in started] == [
        (0, "", ""),
        (1, "ls", reply.blocks[1]["id"]),
        (2, "ls", reply.blocks[2]["id"]),
    ]
    inputs = [part.text for part in parts if isinstance(part, PartDelta) and part.index == 2]
    assert json.loads("".join(inputs)) == {"path": "/a"}


def test_a_function_may_be_a_script() -> None:
    def count(messages: list[Message]) -> ScriptTurn:
        return ScriptTurn(f"{len(messages)} messages")

    replies = play(ScriptedProvider({"count": count}), "count", ["a", "b"])
    assert [reply.blocks[0]["text"] for reply in replies] == ["1 messages", "3 messages"]


def test_the_echo_names_itself_and_repeats_the_message() -> None:
    text = play(ScriptedProvider(), "echo", ["Bring me the report"])[0].blocks[0]["text"]
    assert "offline scripted model" in text
    assert "Bring me the report" in text


def test_the_demo_names_its_limits_and_how_to_use_a_real_model() -> None:
    text = play(ScriptedProvider(), "demo", ["Bring me the report"])[0].blocks[0]["text"]
    assert text.endswith("Bring me the report")
    for name in ("**Run the demo**", "`vel demo`", "**Provider keys**", "*Install Vel*"):
        assert name in text
    assert "ANTHROPIC_API_KEY" in text


def test_usage_is_estimated_and_costs_nothing() -> None:
    reply = play(ScriptedProvider(), "echo", ["x" * 4000])[0]
    assert 1000 < reply.usage.input < 1100
    assert reply.usage.output > 1000
    assert cost(reply.model, reply.usage) == 0


def test_a_script_can_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(
        json.dumps(
            {
                "turns": [
                    {"tool_calls": [{"name": "ls"}, {"name": "ls", "input": {"path": "/"}}]},
                    {"text": "Done.", "delay": 0.01},
                ]
            }
        )
    )
    for name in (str(path), "script.json", "./a/../script.json"):
        first, last = play(ScriptedProvider(directory=tmp_path), f"file:{name}", ["Go"])
        assert [block["input"] for block in first.blocks] == [{}, {"path": "/"}]
        assert last.blocks == [{"type": "text", "text": "Done."}]


def test_an_invalid_script_is_refused_without_a_quote(tmp_path: Path) -> None:
    for content in ("s3cret", '["s3cret"]', '{"s3cret": 1}', '{"turns": ["s3cret"]}', "\xff"):
        path = tmp_path / "secret.txt"
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(ProviderError) as caught:
            ScriptedProvider(directory=tmp_path).conversation(head(f"file:{path}"))
        assert caught.value.code == "invalid_request"
        assert "s3cret" not in caught.value.message
    with pytest.raises(ProviderError, match="cannot be read: No such file") as caught:
        ScriptedProvider(directory=tmp_path).conversation(head(f"file:{tmp_path}/none.json"))
    assert caught.value.code == "not_found"


def test_errors_reveal_nothing_about_files_elsewhere(tmp_path: Path) -> None:
    here, beside = tmp_path / "scripts", tmp_path / "scripts-of-others"
    for directory in (here, beside):
        directory.mkdir()
        (directory / "there.json").write_text('{"turns": []}')
    said = set()
    for name in (
        *("/etc/passwd", "/no/such/file", "/proc/self/environ", "..", "/", "\0", f"{here}/\0"),
        *(f"{beside}/there.json", f"{beside}/none.json", "../scripts-of-others/there.json"),
        *(f"{here}/../scripts-of-others/there.json", "a/../../scripts-of-others/there.json"),
    ):
        for directory in (None, here):
            with pytest.raises(ProviderError) as caught:
                ScriptedProvider(directory=directory).conversation(head(f"file:{name}"))
            said.add((caught.value.code, caught.value.message))
    assert said == {("permission", FILES_REFUSED)}
    assert "VEL_SCRIPTS_DIR" in FILES_REFUSED
    with pytest.raises(ProviderError, match="is no file"):
        ScriptedProvider(directory=here).conversation(head("file:"))


def test_an_unknown_script_is_reported_with_the_known_ones() -> None:
    with pytest.raises(
        ProviderError, match=r"no script is called 'nope'; there are .*echo"
    ) as caught:
        ScriptedProvider().conversation(head("nope"))
    assert (caught.value.code, caught.value.retryable) == ("not_found", False)
