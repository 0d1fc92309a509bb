"""The official client of the package `mcp` with a served site, in both protocols."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
import pytest

from tests.agents.features.mcp_server.serving import ERAS, FORM, JSON, LONG, Served, call
from tests.support.hang import HANG
from tests.support.runs import wait_until

eras = pytest.mark.parametrize("era", ERAS)


def with_client(
    served: Served, work: Callable[[Any], Awaitable[Any]], *, era: str = "auto", token: str = ""
) -> Any:
    async def go() -> Any:
        async with served.client(token or served.token(), era) as client:
            return await work(client)

    return asyncio.run(go())


def status_of(served: Served, run: str) -> str:
    return str(served.site.do("run", run=run)["status"])


@pytest.mark.slow
@eras
def test_it_lists_the_agents_as_tools_without_their_configuration(served: Served, era: str) -> None:
    found = with_client(served, lambda client: client.list_tools(), era=era)
    tools = {tool.name: tool for tool in found.tools}
    assert {"echo", "asks", "slow", "counts", "vel_get_run", "vel_cancel_run"} <= set(tools)
    assert "unoffered" not in tools
    assert len([name for name in tools if name.startswith("a-a-")]) == 1
    assert all(len(name) <= 64 for name in tools)
    echo = tools["echo"]
    assert echo.description == "Says it back.⟨U+202E⟩"
    assert echo.input_schema["required"] == ["message"]
    assert "output_schema" in echo.input_schema["properties"]
    assert "output_schema" not in tools["counts"].input_schema["properties"]
    output = tools["counts"].output_schema["properties"]["output"]
    assert output["properties"]["total"] == FORM["$defs"]["count"]  # references are resolved
    greets = tools["greets"].input_schema["properties"]["context"]["properties"]
    assert list(greets) == ["customer"]
    assert not echo.annotations.read_only_hint
    assert "secret" not in found.model_dump_json()


@pytest.mark.slow
@eras
def test_a_call_runs_the_agent_and_continues_its_thread(served: Served, era: str) -> None:
    told: list[float] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.append(at)

    async def work(client: Any) -> tuple[Any, Any, Any]:
        first = await client.call_tool("echo", {"message": "Hello"}, progress_callback=progress)
        thread = first.structured_content["thread"]
        second = await client.call_tool("echo", {"message": "Again", "thread": thread})
        later = await client.call_tool("vel_get_run", {"run": first.structured_content["run"]})
        return first, second, later

    first, second, later = with_client(served, work, era=era)
    assert not first.is_error
    assert first.content[0].text.endswith("You said:\n\nHello")
    assert first.structured_content["status"] == "completed"
    assert first.structured_content["answer"] == first.content[0].text
    assert second.structured_content["thread"] == first.structured_content["thread"]
    assert second.structured_content["run"] != first.structured_content["run"]
    assert later.structured_content == first.structured_content
    assert told
    assert told == sorted(told)
    stored = served.site.do("run", run=first.structured_content["run"])
    assert (stored["owner"], stored["text"]) == ("olga", "Hello")


def test_an_agents_own_form_and_one_of_the_call_come_as_data(served: Served) -> None:
    counted = with_client(served, lambda c: c.call_tool("counts", {"message": "Count"}))
    assert counted.structured_content["output"] == {"total": 42}
    assert counted.content[0].text == '{"total": 42}'
    refused = with_client(
        served, lambda c: c.call_tool("counts", {"message": "Count", "output_schema": FORM})
    )
    assert refused.is_error
    assert "its own output schema" in refused.content[0].text


def test_output_of_an_agent_has_no_invisible_characters(served: Served) -> None:
    found = with_client(served, lambda client: client.call_tool("hides", {"message": "Hi"}))
    assert found.content[0].text == "Fine.⟨U+E0041⟩⟨U+200B⟩"
    assert found.structured_content["answer"] == "Fine.⟨U+E0041⟩⟨U+200B⟩"


def test_a_prompts_values_are_given_with_the_call(served: Served) -> None:
    async def work(client: Any) -> tuple[Any, Any]:
        without = await client.call_tool("greets", {"message": "Hi"})
        return without, await client.call_tool(
            "greets", {"message": "Hi", "context": {"customer": "Ms Lovelace"}}
        )

    without, with_value = with_client(served, work)
    assert without.is_error
    assert "customer" in without.content[0].text
    assert not with_value.is_error


@eras
def test_a_run_that_needs_a_person_is_reported_and_fetched_later(served: Served, era: str) -> None:
    asked = with_client(served, lambda c: c.call_tool("asks", {"message": "Go"}), era=era)
    told = asked.structured_content
    assert (told["status"], told["waits_for"]) == ("waiting", "approval")
    assert told["url"] in asked.content[0].text
    assert "vel_get_run" in asked.content[0].text
    assert not asked.is_error
    cancelled = with_client(served, lambda c: c.call_tool("vel_cancel_run", {"run": told["run"]}))
    assert cancelled.structured_content["status"] == "cancelled"
    assert status_of(served, told["run"]) == "cancelled"


def test_a_client_that_does_not_wait_gets_the_answer_later(served: Served) -> None:
    async def work(client: Any) -> tuple[Any, Any]:
        begun = await client.call_tool("echo", {"message": "Hello", "wait_seconds": 0})
        run = begun.structured_content["run"]
        return begun, await client.call_tool("vel_get_run", {"run": run, "wait_seconds": 50})

    begun, found = with_client(served, work)
    assert begun.structured_content["status"] != "waiting"
    assert found.structured_content["answer"].endswith("Hello")


def test_a_call_that_is_cancelled_ends_its_run(served: Served) -> None:
    async def work(client: Any) -> None:
        with anyio.CancelScope() as scope:

            async def give_up(at: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("slow", {"message": "Wait"}, progress_callback=give_up)
        await client.list_tools()  # a client that leaves immediately does not send its cancellation

    with_client(served, work, era="legacy")
    run = str(served.site.do("newest_run"))
    wait_until(lambda: status_of(served, run) == "cancelled", "the cancelled run")


@eras
def test_a_connection_that_is_lost_leaves_the_run(served: Served, era: str) -> None:
    token = served.token()
    asked = call("slow", message="Wait")
    asked["params"]["_meta"] = {"progressToken": 1, **(ENVELOPE if era == "auto" else {})}
    headers = {**JSON, "Authorization": f"Bearer {token}", **(MODERN if era == "auto" else {})}
    with httpx2.stream("POST", served.url, json=asked, headers=headers, timeout=HANG) as answer:
        lines = answer.iter_lines()
        assert any("notifications/progress" in line for line in lines)
    run = str(served.site.do("newest_run"))
    found = served.call(token, "vel_get_run", run=run)["structuredContent"]
    assert (found["run"], found["status"]) == (run, "running")
    served.call(token, "vel_cancel_run", run=run)


@pytest.mark.slow
@eras
def test_a_token_that_ends_while_it_waits_gets_no_answer(served: Served, era: str) -> None:
    async def work(client: Any) -> Any:
        async def revoke(at: float, total: float | None, message: str | None) -> None:
            served.site.do("revoke_tokens", user="peter")

        return await client.call_tool("slow", {"message": "Wait"}, progress_callback=revoke)

    refused = with_client(served, work, era=era, token=served.token("peter"))
    assert refused.is_error
    assert "has expired or was revoked" in refused.content[0].text
    assert status_of(served, str(served.site.do("newest_run"))) == "running"


MODERN = {
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "slow",
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def test_a_repeated_call_starts_no_second_run(served: Served) -> None:
    async def work(client: Any) -> list[Any]:
        asked = {"message": "Once", "idempotency_key": "key 1"}
        other = {"message": "Twice", "idempotency_key": "key 1"}
        return [await client.call_tool("echo", each) for each in (asked, asked, other)]

    token = served.token("peter")
    first, again, other = with_client(served, work, token=token)
    assert again.structured_content == first.structured_content
    assert other.is_error
    assert "idempotency_mismatch" in other.content[0].text


def test_unknown_tools_are_refused(served: Served) -> None:
    from mcp.shared.exceptions import MCPError

    async def work(client: Any, name: str) -> None:
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool(name, {"message": "Hi"})

    async def all_of_them(client: Any) -> None:
        for name in ("unoffered", "nobody", LONG, "x" * 5_000, "echo\n", "", "Écho"):
            await work(client, name)

    with_client(served, all_of_them)
