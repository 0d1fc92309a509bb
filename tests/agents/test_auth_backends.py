"""Django's permission check (`has_perm`) for one agent."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, Group, User

from agents.models import Agent, Run
from agents.selectors.visible import APPROVE, is_approver
from tests.agents.admin import rows

pytestmark = pytest.mark.django_db


def approver_of(agent: Agent, name: str = "lea") -> User:
    group, _ = Group.objects.get_or_create(name=f"approvers of {agent.slug}")
    agent.approver_groups.add(group)
    user = rows.user(name)
    user.groups.add(group)
    return user


def test_members_of_an_agents_groups_may_approve_for_it_and_for_no_other() -> None:
    agent, other = rows.agent("one"), rows.agent("two")
    user = approver_of(agent)
    assert user.has_perm(APPROVE, agent)
    assert async_to_sync(user.ahas_perm)(APPROVE, agent)
    assert not user.has_perm(APPROVE, other)
    assert not user.has_perm(APPROVE)
    assert not user.has_perm("agents.change_agent", agent)
    assert not user.has_perm(APPROVE, Run(pk=agent.pk))


def test_the_backend_agrees_with_the_selectors() -> None:
    agent = rows.agent("one")
    everywhere = rows.staff("all", "approve_toolcall")
    nobody, root, member = rows.user("bob"), rows.superuser(), approver_of(agent)
    for user, may in [(everywhere, True), (nobody, False), (root, True), (member, True)]:
        assert (user.has_perm(APPROVE, agent), is_approver(user, agent.pk)) == (may, may)


def test_inactive_and_anonymous_users_have_no_permission() -> None:
    agent = rows.agent("one")
    user = approver_of(agent)
    User.objects.update(is_active=False)
    user = User.objects.get(pk=user.pk)
    assert not user.has_perm(APPROVE, agent)
    assert not is_approver(user, agent.pk)
    assert not AnonymousUser().has_perm(APPROVE, agent)


def test_leaving_the_group_ends_the_permission() -> None:
    agent = rows.agent("one")
    user = approver_of(agent)
    assert user.has_perm(APPROVE, agent)
    user.groups.clear()
    assert not user.has_perm(APPROVE, agent)


def test_the_backend_signs_no_one_in(client) -> None:
    approver_of(rows.agent("one"))
    assert not client.login(username="lea", password="wrong")
    assert client.login(username="lea", password=rows.PASSWORD)
