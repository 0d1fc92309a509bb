"""The page of an agent's memory: safe to read, and editable with permission."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Agent
from memory.actions.changes import write_file
from memory.limits import MAX_FILE_BYTES
from memory.models import MemoryFile, MemoryRevision
from tests.agents.web.conftest import SignIn
from tests.support import site_writer
from tests.support.runs import make_agent

pytestmark = pytest.mark.django_db

PATH = "knowledge/notes.md"
HOSTILE = '<script>alert(1)</script>\u202e"onload=x\n</textarea><b>'


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    return sign_in("olga")


@pytest.fixture
def agent(olga: Client) -> Agent:
    """Olga's agent, which all users may use."""
    return make_agent(person("olga"), slug="helper", name="Helper<i>\u202e", everyone=True)


def person(name: str) -> User:
    return User.objects.get(username=name)


def remember(agent: Agent, content: str, path: str = PATH) -> int:
    return write_file(
        agent, path, content, by=person("olga"), source="web", reason=f"Why: {content[:20]}"
    )


def text(client: Client, query: str = "", status: int = 200, slug: str = "helper") -> str:
    response = client.get(f"/agents/{slug}/knowledge/{query}")
    assert response.status_code == status
    if status == 200:
        assert "script-src" not in response["Content-Security-Policy"]
        assert "default-src 'self'" in response["Content-Security-Policy"]
        assert response["Cache-Control"].startswith("max-age=0")
    return response.content.decode()


def post(client: Client, action: str, slug: str = "helper", **fields: Any) -> Any:
    data = {"action": action, "path": PATH, **fields}
    return client.post(f"/agents/{slug}/knowledge/", data, follow=True)


def stored(agent: Agent, path: str = PATH) -> str | None:
    files = MemoryFile.objects.filter(agent=agent, path=path)
    return files.values_list("content", flat=True).first()


def test_the_tree_lists_every_file_and_how_full_the_memory_is(olga: Client, agent: Agent) -> None:
    remember(agent, "x" * 51_200)
    page = text(olga)
    for path in ("AGENTS.md", "tools.json", PATH):
        assert f">{path}</a>" in page
    assert "(50%)" in page
    assert 'high="81920"' in page
    assert "Nearly full" not in page
    assert "Helper&lt;i&gt;⟨U+202E⟩" in page


@pytest.mark.parametrize(
    ("size", "said"), [(81_920, "Nearly full"), (102_401, "Over the recommended")]
)
def test_a_full_memory_says_so(olga: Client, agent: Agent, size: int, said: str) -> None:
    remember(agent, "x" * (size // 2))
    remember(agent, "x" * (size - size // 2), "knowledge/more.md")
    assert said in text(olga)


def test_a_file_is_shown_as_text_with_hidden_characters_and_findings(
    olga: Client, agent: Agent
) -> None:
    remember(agent, f"{HOSTILE}\nx\u200by\n")
    page = text(olga, f"?path={PATH}")
    assert "&lt;script&gt;" in page
    assert "⟨U+202E⟩" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "<b>" not in page
    assert "mark-danger" in page or "mark-warning" in page
    assert "line 3:" in page


@pytest.mark.slow
def test_a_file_of_line_breaks_is_cut_for_the_page(olga: Client, agent: Agent) -> None:
    remember(agent, "\n" * 50_000)
    page = text(olga, f"?path={PATH}")
    assert "45001 more lines" in page
    assert len(page) < 1_000_000


def test_the_settings_are_read_only(olga: Client, agent: Agent) -> None:
    page = text(olga, "?path=AGENTS.md")
    assert "read-only, from the agent" in page
    assert 'value="delete"' not in page
    assert "<textarea" not in text(olga, "?path=AGENTS.md&edit=1")
    for response in (
        post(olga, "save", path="AGENTS.md", content="evil", base="0"),
        post(olga, "delete", path="AGENTS.md", base="0"),
    ):
        assert "read-only" in response.content.decode()
    agent.refresh_from_db()
    assert agent.system_prompt == ""


def test_the_history_shows_person_reason_and_change(olga: Client, agent: Agent) -> None:
    remember(agent, "one\n")
    remember(agent, "two\n")
    page = text(olga, f"?path={PATH}&revision=2")
    assert "Why: two" in page
    assert "olga" in page
    assert "diff-row removed" in page
    assert "diff-row added" in page
    assert page.count("Restore revision") == 1, "not of the latest"
    text(olga, f"?path={PATH}&revision=3", 404)
    text(olga, f"?path={PATH}&revision=x", 404)


@pytest.mark.slow
def test_a_long_history_has_pages(olga: Client, agent: Agent) -> None:
    for number in range(60):
        remember(agent, str(number))
    assert "1 of 2" in text(olga, f"?path={PATH}")
    assert ">Revision 1</a>" in text(olga, f"?path={PATH}&page=2")


def test_a_revision_is_restored(olga: Client, agent: Agent) -> None:
    remember(agent, "one")
    remember(agent, "two")
    assert (
        "Restored revision 1 as revision 3" in post(olga, "restore", revision="1").content.decode()
    )
    assert stored(agent) == "one"


def test_only_the_change_that_the_page_shows_is_undone(olga: Client, agent: Agent) -> None:
    remember(agent, "One")
    assert "Undo the last change" not in text(olga, f"?path={PATH}")
    remember(agent, "Two")
    assert "Undo the last change" in text(olga, f"?path={PATH}")
    remember(agent, "Three")
    late = post(olga, "restore", revision="1", base="2").content.decode()
    assert "has changed. Reload it" in late
    assert stored(agent) == "Three"
    post(olga, "restore", revision="2", base="3")
    assert stored(agent) == "Two"


def test_a_file_is_deleted_and_restored(olga: Client, agent: Agent) -> None:
    remember(agent, "one")
    page = post(olga, "delete", base="1").content.decode()
    assert "This file is deleted" in page
    post(olga, "restore", revision="1")
    assert stored(agent) == "one"


def test_a_file_is_edited_as_it_is_and_saved_with_a_reason(olga: Client, agent: Agent) -> None:
    remember(agent, f"\n{HOSTILE}")
    page = text(olga, f"?path={PATH}&edit=1")
    assert "&lt;/textarea&gt;&lt;b&gt;" in page
    assert "invisible characters" in page
    assert "\\u{202e}" in page
    response = post(olga, "save", base="1", content="a\r\nb", reason="Tidy.")
    assert "Saved as revision 2" in response.content.decode()
    assert stored(agent) == "a\nb"
    assert MemoryRevision.objects.get(number=2).reason == "Tidy."


def test_saving_an_unchanged_form_changes_nothing(olga: Client, agent: Agent) -> None:
    content = f"\n{HOSTILE}\r\n\u200b \\u{{41}} &amp; \t\n\n"
    remember(agent, content)
    form = olga.get(f"/agents/helper/knowledge/?path={PATH}&edit=1").context["form"]
    shown = form["content"].replace("\n", "\r\n")
    post(olga, "save", base=str(form["base"]), content=shown)
    assert stored(agent) == content
    assert MemoryRevision.objects.count() == 1


def test_a_new_file_is_made(olga: Client, agent: Agent) -> None:
    assert 'name="path"' in text(olga, "?edit=1")
    post(olga, "save", base="0", content="x", path="knowledge/new.md")
    assert stored(agent, "knowledge/new.md") == "x"


def test_typed_text_survives_a_refusal(olga: Client, agent: Agent) -> None:
    remember(agent, "one")
    remember(agent, "two")
    response = post(olga, "save", base="1", content="typed <b>")
    assert response.status_code == 409
    page = response.content.decode()
    assert "has changed" in page
    assert "typed &lt;b&gt;" in page
    assert stored(agent) == "two"
    assert post(olga, "save", base="0", content="two").status_code == 409, "it is there already"
    assert post(olga, "save", base="2", content="x" * (MAX_FILE_BYTES + 1)).status_code == 400
    assert stored(agent) == "two"


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("save", {"content": "evil"}),
        ("save", {"content": "evil", "base": "-1"}),
        ("save", {"content": "evil", "base": "0", "path": "../../etc/passwd"}),
        ("save", {"content": "evil", "base": "0", "path": "knowledge/a\x00.md"}),
        ("save", {"content": "evil", "base": "0", "path": "skills/evil.md"}),
        ("save", {"content": "evil\x00", "base": "1"}),
        ("delete", {}),
        ("delete", {"base": "0"}),
        ("delete", {"base": "1", "path": "knowledge/none.md"}),
        ("restore", {"revision": "x"}),
        ("restore", {"revision": "99"}),
        ("restore", {"revision": "9" * 40}),
        ("overwrite", {"content": "evil", "base": "1"}),
        ("", {}),
    ],
)
def test_a_form_that_does_not_fit_changes_nothing(
    olga: Client, agent: Agent, action: str, fields: dict[str, str]
) -> None:
    remember(agent, "one")
    response = post(olga, action, **fields)
    assert response.status_code in (200, 400, 404)
    assert "problem" in response.content.decode()
    assert MemoryRevision.objects.count() == 1


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "knowledge/../AGENTS.md",
        "knowledge/none.md",
        "/etc/passwd",
        "knowledge/",
        "%00",
        "x" * 5000,
    ],
)
def test_an_invalid_path_is_not_found(olga: Client, agent: Agent, path: str) -> None:
    text(olga, f"?path={path}", 404)


@pytest.mark.slow
def test_a_user_of_the_agent_reads_and_changes_nothing(
    olga: Client, agent: Agent, sign_in: SignIn
) -> None:
    remember(agent, "one")
    remember(agent, "two")
    peter = sign_in("peter")
    page = text(peter, f"?path={PATH}")
    assert "two" in page
    for offered in ('value="restore"', 'value="delete"', '&amp;edit=1"'):
        assert offered not in page
    assert "<textarea" not in text(peter, f"?path={PATH}&edit=1")
    assert post(peter, "save", base="2", content="evil").status_code == 403
    post(peter, "delete", base="2")
    post(peter, "restore", revision="1")
    assert stored(agent) == "two"


def test_an_approver_changes_it(olga: Client, agent: Agent, sign_in: SignIn) -> None:
    remember(agent, "one")
    post(sign_in("ada", approver=True), "save", base="1", content="two")
    assert stored(agent) == "two"


def test_an_agent_that_one_may_not_use_is_not_found(
    olga: Client, agent: Agent, sign_in: SignIn
) -> None:
    Agent.objects.filter(pk=agent.pk).update(everyone=False)
    peter = sign_in("peter")
    text(peter, "", 404)
    assert post(peter, "save", base="0", content="evil").status_code == 404
    text(olga, "", 404, slug=agent.pk)
    assert Client().get("/agents/helper/knowledge/").status_code == 302


def test_a_change_needs_the_pages_token(olga: Client, agent: Agent) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person("olga"))
    assert post(strict, "save", base="0", content="evil").status_code == 403
    assert stored(agent) is None


def test_pending_requests_are_linked_for_permitted_people(
    olga: Client, agent: Agent, sign_in: SignIn
) -> None:
    run = site_writer.make_run("olga")
    other = Agent.objects.get(slug=site_writer.ASSISTANT)
    request = site_writer.ask_memory(run, PATH, "x", reason=f"Because {HOSTILE}")
    page = text(olga, slug=other.slug)
    assert f'href="/approvals/{request}/"' in page
    assert "Because &lt;script&gt;" in page
    assert request not in text(olga), "it is another agent's"
    assert request not in text(sign_in("peter"), slug=other.slug)


def test_the_first_page_links_to_it(olga: Client, agent: Agent) -> None:
    assert 'href="/agents/helper/knowledge/"' in olga.get("/").content.decode()
