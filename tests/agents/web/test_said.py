"""Texts as Markdown, complete calls and pictures: only of the user's own runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.events.append import dump
from agents.models import Effect, Run, RunClock, ToolCall
from agents.settings import DataSettings
from agents.states import ToolCallStatus
from tests.agents.web.conftest import SignIn
from tests.support import site_writer
from tests.support.pictures import png


def outputs_of(run: str) -> Path:
    thread = Run.objects.get(pk=run).thread_id
    made = DataSettings.now().workspaces / thread / "outputs"
    made.mkdir(parents=True)
    return made


def made_call(run: str, tool: str, given: dict[str, str], result: str) -> None:
    ToolCall.objects.create(
        run_id=run,
        turn=1,
        position=ToolCall.objects.filter(run=run).count(),
        call_id="c1",
        tool=tool,
        input=dump(given),
        effect=Effect.WRITE,
        status=ToolCallStatus.SUCCEEDED,
        result=dump(result),
    )


def test_only_texts_are_returned_by_their_numbers(run: str, sign_in: SignIn) -> None:
    texts = [("text.completed", {"part_id": "1", "text": text}) for text in ("**a**", "b" * 70_000)]
    last = site_writer.append(run, [*texts, ("reasoning.completed", {"text": "**secret**"})])
    olga = sign_in("olga")
    found = olga.get(f"/runs/{run}/said/?seq={last - 2},{last - 1},{last},x,-1,,99999").json()
    assert found == {
        "texts": {str(last - 2): [["p", {}, ["strong", {}, "a"]]], str(last - 1): None}
    }
    assert olga.get(f"/runs/{run}/said/").json() == {"texts": {}}


def test_an_answer_is_limited_and_continues_at_its_end(run: str, sign_in: SignIn) -> None:
    text = ("word " * 9 + "\n\n") * 1_000
    last = site_writer.append(run, [("text.completed", {"part_id": "1", "text": text})] * 9)
    olga = sign_in("olga")
    seen: list[int] = []
    for _ in range(9):
        left = [seq for seq in range(last - 8, last + 1) if seq not in seen]
        if not left:
            break
        answer = olga.get(f"/runs/{run}/said/?seq={','.join(map(str, left))}").json()["texts"]
        assert 0 < len(answer) < 9
        seen += map(int, answer)
    assert seen == list(range(last - 8, last + 1))


def test_a_call_is_complete_and_an_edit_is_a_diff(run: str, sign_in: SignIn) -> None:
    given = {"path": "/sandbox/outputs/a.md", "old_text": "dry", "new_text": "wet\u202e"}
    made_call(run, "edit_file", given, "x" * 100_000 + "\u200b")
    answer = sign_in("olga").get(f"/runs/{run}/call/?call=c1").json()
    assert len(answer["output"]) > 100_000
    assert answer["output"].endswith("⟨U+200B⟩")
    assert answer["is_cut"] is False
    [section] = answer["review"]["sections"]
    assert (section["kind"], section["added"], section["removed"]) == ("diff", 1, 1)
    assert section["notes"] == []
    assert sign_in("olga").get(f"/runs/{run}/call/?call=none\0").status_code == 404


@pytest.mark.parametrize("path", ["said/?seq=1", "call/?call=c1", "pictures/a.png"])
def test_another_persons_run_is_not_there(path: str, run: str, sign_in: SignIn) -> None:
    made_call(run, "ls", {}, "x")
    (outputs_of(run) / "a.png").write_bytes(png())
    assert sign_in("olga").get(f"/runs/{run}/{path}").status_code == 200
    assert sign_in("peter").get(f"/runs/{run}/{path}").status_code == 404


def test_a_watcher_gets_no_files_and_no_complete_calls(run: str, sign_in: SignIn) -> None:
    text = "![a](outputs/a.png) [b](outputs/b.md)"
    last = site_writer.append(run, [("text.completed", {"part_id": "1", "text": text})])
    site_writer.ask(run, "execute", {"command": "ls"}, call_id="c1")
    own = str(sign_in("olga").get(f"/runs/{run}/said/?seq={last}").json())
    assert f"/runs/{run}/pictures/a.png" in own
    assert f"/runs/{run}/files/b.md" in own
    ada = sign_in("ada", approver=True)
    assert "/runs/" not in str(ada.get(f"/runs/{run}/said/?seq={last}").json())
    assert ada.get(f"/runs/{run}/call/?call=c1").status_code == 404


NOT_DELIVERABLES = "/approvals/", "../../x.png", "/sandbox/workspace/x.png", "/etc/passwd.png"
NOT_DELIVERABLES += ("//evil.example/a.png", "outputs/../../a.png", "file:///a.png", "%00.png", "")


@pytest.mark.parametrize("named", NOT_DELIVERABLES)
def test_only_deliverables_are_files_of_a_text(named: str, run: str, sign_in: SignIn) -> None:
    text = f"![x](<{named}>) [x](<{named}>)"
    last = site_writer.append(run, [("text.completed", {"part_id": "1", "text": text})])
    answer = sign_in("olga").get(f"/runs/{run}/said/?seq={last}").json()
    assert f"/runs/{run}/" not in str(answer)


def test_a_picture_is_encoded_again(run: str, sign_in: SignIn) -> None:
    outputs = outputs_of(run)
    (outputs / "a.png").write_bytes(png() + b"<script>1</script>")
    (outputs / "b.png").write_text("<script>1</script>")
    (outputs.parent / "secret.png").write_bytes(png())
    (outputs / "link.png").symlink_to(outputs.parent / "secret.png")
    olga = sign_in("olga")
    answer = olga.get(f"/runs/{run}/pictures/a.png")
    assert answer["Content-Type"] == "image/png"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert b"script" not in answer.content
    for path in ("b.png", "none.png", "link.png", "../secret.png", "%2e%2e/secret.png"):
        assert olga.get(f"/runs/{run}/pictures/{path}").status_code == 404, path


def test_usage_counts_the_whole_family(run: str, sign_in: SignIn) -> None:
    child = site_writer.make_child(run)
    RunClock.objects.filter(run=run).update(input_tokens=10, turn=2, cost_microusd=1_000_000)
    RunClock.objects.filter(run=child).update(input_tokens=5, turn=1, cost_microusd=500_000)
    summary = sign_in("olga").get(f"/runs/{run}/summary/").json()
    assert (summary["tokens"], summary["own_tokens"], summary["turns"]) == (15, 10, 3)
    assert (summary["cost"], summary["members"]) == ("1.5000", 2)
