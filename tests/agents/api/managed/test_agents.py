"""Agents by REST: creating, changing, archiving, and the versions."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from agents.features.databases.models import DatabaseConnection
from agents.features.mcp_client.models import McpServer
from agents.models import Agent, AuditEntry
from agents.secret_text import SecretText
from tests.agents.api.managed.rows import operator, patch, post
from tests.agents.api.rows import client_for, make_agent, make_user, problem_of

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
URL = "/api/v1/agents"
RULES: list[object] = [{"tool": "execute", "action": "deny"}]


def make_database() -> DatabaseConnection:
    url = SecretText.seal("sqlite:////srv/shop.sqlite3")
    return DatabaseConnection.objects.create(name="shop", dialect="sqlite", url=url)


def test_a_program_makes_changes_archives_and_brings_back_an_agent() -> None:
    client = client_for(make_user("olga", "add_agent", "change_agent", "configure_approval"))
    made = post(
        client,
        URL,
        {
            "name": "Sales",
            "slug": "sales",
            "provider": "scripted",
            "model": "demo",
            "system_prompt": "Count.",
            "approval_rules": RULES,
            "subagents": [{"name": "counter", "description": "Counts.", "system_prompt": "Count."}],
        },
    )
    assert made.status_code == 201, made.content
    where = made["Location"]
    agent = Agent.objects.get()
    assert (agent.slug, str(agent.owner), agent.version) == ("sales", "olga", 1)
    read = client.get(f"{where}/definition")
    assert read["ETag"] == made["ETag"]
    definition = read.json()
    assert definition["system_prompt"] == "Count."
    assert definition["approval_rules"][0]["tool"] == "execute"
    assert definition["subagents"][0]["name"] == "counter"
    changed = patch(client, where, {"max_turns": 7}, **{"If-Match": read["ETag"]})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    after = client.get(f"{where}/definition").json()
    assert after == {**definition, "max_turns": 7}
    stale = patch(client, where, {"max_turns": 8}, **{"If-Match": read["ETag"]})
    assert (stale.status_code, problem_of(stale)["code"]) == (412, "stale")
    assert client.delete(where).status_code == 204
    assert [row["slug"] for row in client.get(URL).json()["results"]] == []
    listed = client.get(f"{URL}?of=defined").json()["results"]
    assert [row["slug"] for row in listed] == ["sales"]
    assert client.get(where).json()["is_active"] is False
    assert patch(client, where, {"is_active": True}).json()["is_active"] is True
    done = AuditEntry.objects.filter(kind="agent").order_by("id")
    assert [(each.action, each.door, each.actor) for each in done] == [
        ("agent.created", "api", "olga"),
        *[("agent.changed", "api", "olga")] * 3,
    ]


def test_a_version_is_restored_as_a_new_version() -> None:
    agent = make_agent(system_prompt="First.", max_turns=3, provider="", model="")
    client = client_for(make_user("olga", "change_agent"))
    where = f"{URL}/{agent.pk}"
    patch(client, where, {"system_prompt": "Second.", "max_turns": 9, "description": "New."})
    versions = client.get(f"{where}/versions").json()["results"]
    assert [row["number"] for row in versions] == [2, 1]
    assert versions[0]["changed"] == ["max_turns", "system_prompt"]
    assert (versions[0]["created_by"], versions[1]["changed"]) == ("olga", [])
    assert client.get(f"{where}/versions/1").json()["spec"]["system_prompt"] == "First."
    assert client.get(f"{where}/versions/9").status_code == 404
    restored = post(client, f"{where}/versions/1/restore")
    assert (restored.status_code, restored.json()["version"]) == (200, 3), restored.content
    agent.refresh_from_db()
    assert (agent.system_prompt, agent.max_turns) == ("First.", 3)
    # Fields outside of versions stay, and the agent still follows the settings.
    assert (agent.description, agent.provider, agent.model) == ("New.", "", "")
    assert agent.versions.get(number=3).spec == agent.versions.get(number=1).spec


def test_a_restored_version_has_its_databases_and_mcp_tools() -> None:
    database = make_database()
    tool = {"name": "now", "title": "", "description": "The time.", "annotations": {}}
    tool |= {"input_schema": {"type": "object"}, "digest": "0" * 64, "effect": "read"}
    McpServer.objects.create(
        slug="time", command="mcp-server-time", tools=[tool], secrets=SecretText("")
    )
    agent = make_agent(mcp_servers=["time"])
    client = client_for(
        make_user("olga", "change_agent", "configure_database", "configure_mcpserver")
    )
    where = f"{URL}/{agent.pk}"
    assert patch(client, where, {"databases": ["shop"]}).status_code == 200
    assert patch(client, where, {"databases": [], "mcp_servers": []}).status_code == 200
    assert post(client, f"{where}/versions/2/restore").status_code == 200
    agent = Agent.objects.get()
    assert list(agent.databases.all()) == [database]
    assert agent.versions.get(number=4).spec == agent.versions.get(number=2).spec
    # The version names what is needed, and that is checked again.
    clerk = client_for(make_user("cleo", "change_agent"))
    assert post(clerk, f"{where}/versions/3/restore").status_code == 403
    assert list(Agent.objects.get().databases.all()) == [database]


def test_wrong_fields_are_named() -> None:
    agent = make_agent()
    client = client_for(make_user("olga", "change_agent", "add_agent"))
    for body, field in [
        ({"max_turns": "many"}, "max_turns"),
        ({"max_turns": None}, "max_turns"),
        ({"tools": ["nosuch"]}, "tools"),
        ({"system_promt": "x"}, "system_promt"),
        ({"slug": "no slug"}, "slug"),
        ({"is_superuser": True}, "is_superuser"),
        ({"name": ""}, "name"),
        ({"subagents": [{"name": "x"}]}, "subagents"),
    ]:
        refused = patch(client, f"{URL}/{agent.pk}", body)
        assert refused.status_code == 400, (body, refused.content)
        assert field in problem_of(refused)["errors"], (body, refused.content)
    agent.refresh_from_db()
    assert agent.version == 1


def test_an_agent_gets_another_slug_and_owner_as_in_the_admin() -> None:
    agent, _ = make_agent(owner=make_user("ann")), make_agent("taken")
    client = operator("change_agent")
    where = f"{URL}/{agent.pk}"
    definition = client.get(f"{where}/definition").json()
    assert definition["owner"] == "ann"
    same = patch(client, where, definition)
    assert (same.status_code, same.json()["version"]) == (200, 1), same.content
    make_user("bob")
    moved = patch(client, where, {"slug": "poet", "owner": "bob"})
    assert moved.json()["slug"] == "poet"
    assert client.get(f"{where}/definition").json() == {
        **definition,
        "slug": "poet",
        "owner": "bob",
    }
    taken = patch(client, where, {"slug": "taken"})
    assert (taken.status_code, problem_of(taken)["code"]) == (409, "slug_taken")
    assert patch(client, where, {"owner": "nobody"}).status_code == 400
    # The owner controls the memory, so taking over an agent needs access to the admin.
    pia = client_for(make_user("pia", "change_agent"))
    assert patch(pia, where, {"owner": "pia"}).status_code == 403
    assert Agent.objects.get(pk=agent.pk).owner == User.objects.get(username="bob")
    assert post(pia, URL, {"name": "New", "owner": "bob"}).status_code in (400, 403)


def test_an_existing_agent_is_not_replaced_by_a_new_one() -> None:
    agent = make_agent("sales", system_prompt="Mine.")
    client = client_for(make_user("olga", "add_agent", "change_agent"))
    taken = post(client, URL, {"name": "Sales", "slug": "sales", "system_prompt": "Yours."})
    assert (taken.status_code, problem_of(taken)["code"]) == (409, "slug_taken")
    agent.refresh_from_db()
    assert agent.system_prompt == "Mine."
    other = post(client, URL, {"name": "Sales"})
    assert other.json()["slug"] == "sales-2"


def test_a_stranger_finds_and_changes_no_agent_of_others() -> None:
    agent = make_agent("secret", everyone=False, system_prompt="The safe is behind the clock.")
    client = client_for(make_user("ann", "add_agent"))
    where = f"{URL}/{agent.pk}"
    for answer in (
        client.get(where),
        client.get(f"{where}/definition"),
        client.get(f"{where}/versions"),
        client.get(f"{where}/versions/1"),
        patch(client, where, {"everyone": True}),
        client.delete(where),
        post(client, f"{where}/versions/1/restore"),
        client.get(f"{URL}/secret/definition"),
    ):
        assert answer.status_code == 404, answer.content
        assert "clock" not in answer.content.decode()
    assert client.get(f"{URL}?of=defined").json()["results"] == []
    agent.refresh_from_db()
    assert (agent.is_active, agent.everyone) == (True, False)


def test_a_user_of_an_agent_reads_no_definition_and_changes_nothing() -> None:
    agent = make_agent(system_prompt="The safe is behind the clock.")
    client = client_for(make_user("ann"))
    where = f"{URL}/{agent.pk}"
    for answer in (
        client.get(f"{where}/definition"),
        client.get(f"{where}/versions"),
        client.get(f"{where}/versions/1"),
        patch(client, where, {"system_prompt": "x"}),
        client.delete(where),
        post(client, f"{where}/versions/1/restore"),
    ):
        assert answer.status_code == 403, answer.content
        assert "clock" not in answer.content.decode()
    used = client.get(where)
    assert "clock" not in used.content.decode()
    assert not used.has_header("ETag")
    agent.refresh_from_db()
    assert agent.is_active


@pytest.mark.parametrize(
    ("body", "permission"),
    [
        ({"everyone": True}, "agents.share_agent"),
        ({"approval_rules": RULES}, "agents.configure_approval"),
        ({"network": "full"}, "agents.configure_sandbox"),
        ({"databases": ["shop"]}, "vel_databases.configure_database"),
        ({"mcp_servers": ["time"]}, "vel_mcp_client.configure_mcpserver"),
    ],
)
def test_guarded_fields_need_their_permission(body: dict[str, object], permission: str) -> None:
    make_database()
    agent = make_agent(everyone=False)
    client = client_for(make_user("olga", "change_agent", "add_agent"))
    refused = patch(client, f"{URL}/{agent.pk}", body)
    assert refused.status_code == 403, refused.content
    assert permission in problem_of(refused)["detail"]
    assert post(client, URL, {"name": "New", **body}).status_code == 403
    agent.refresh_from_db()
    assert (agent.version, Agent.objects.count()) == (1, 1)


def test_only_operators_with_the_scope_admin_erase_an_archived_agent() -> None:
    owner = make_user("ann", "change_agent")
    agent = make_agent("old", owner=owner, is_active=False)
    where = f"{URL}/{agent.pk}/erase"
    powers = ("change_agent", "delete_agent", "erase_thread")
    stranger = post(client_for(make_user("bob"), "admin"), where, {})
    assert stranger.status_code == 404, stranger.content
    assert post(client_for(owner, "admin"), where, {}).status_code == 403
    operators = make_user("olga", *powers)
    narrow = post(client_for(operators, "read", "run", "manage"), where, {})
    assert (narrow.status_code, problem_of(narrow)["code"]) == (403, "insufficient_scope")
    assert Agent.objects.filter(pk=agent.pk).exists()
    done = post(client_for(operators, "admin"), where, {})
    assert done.json() == {"conversations": 0, "is_erased": True}
    assert not Agent.objects.filter(pk=agent.pk).exists()


def test_an_owner_without_the_permission_changes_and_archives_the_own_agent() -> None:
    ann = make_user("ann")
    make_agent("mine", owner=ann)
    make_agent("of-bob", owner=make_user("bob"), everyone=True)
    client = client_for(ann)
    assert patch(client, f"{URL}/mine", {"max_turns": 3}).json()["version"] == 2
    assert patch(client, f"{URL}/of-bob", {"max_turns": 3}).status_code == 403
    assert client.delete(f"{URL}/of-bob").status_code == 403
    assert client.delete(f"{URL}/mine").status_code == 204
    back = patch(client, f"{URL}/mine", {"is_active": True})
    assert back.status_code == 403  # an operator may have turned it off
    assert Agent.objects.get(slug="of-bob").is_active
