"""Visibility of rows. Every query for a user starts here."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.db.models import Q, QuerySet

from agents.kernel.proposals import feature_request_kinds
from agents.models import (
    Agent,
    ApiToken,
    ApprovalGrant,
    ApprovalRequest,
    AuditEntry,
    Run,
    Thread,
    UsageTotal,
)

Person = AbstractBaseUser | AnonymousUser


APPROVE = "agents.approve_toolcall"
VIEW_ALL = "agents.view_all_runs"
VIEW_AUDIT = "agents.view_auditentry"


def _has(user: Person, permission: str) -> bool:
    return (
        isinstance(user, PermissionsMixin)
        and bool(getattr(user, "is_active", False))
        and user.has_perm(permission)
    )


def agents_for(user: Person) -> QuerySet[Agent]:
    """Return active agents that `user` can start runs with."""
    if not user.is_authenticated:
        return Agent.objects.none()
    agents = Agent.objects.filter(is_active=True)
    if getattr(user, "is_superuser", False):
        return agents
    return agents.filter(
        Q(everyone=True) | Q(owner=user.pk) | Q(groups__in=user.groups.all())  # type: ignore[attr-defined]
    ).distinct()


def agent_named(agents: QuerySet[Agent], name: str) -> Agent | None:
    """Return the one of `agents` with the id or slug `name`.

    A text that is the id of any agent is no slug: somebody could give an agent the id of another
    one as its slug.
    """
    return agents.filter(of_agent("", name)).first()


def of_agent(relation: str, name: str) -> Q:
    """Return a filter of rows whose `relation` is the agent with the id or slug `name`.

    With an empty relation, it is a filter of agents. See `agent_named`.
    """
    by = "pk" if Agent.objects.filter(pk=name).exists() else "slug"
    return Q(**{f"{relation}__{by}" if relation else by: name})


def definitions_for(user: Person) -> QuerySet[Agent]:
    """Return agents whose definition `user` may read, also archived ones."""
    if not user.is_authenticated:
        return Agent.objects.none()
    names = ("agents.view_agent", "agents.change_agent")
    if any(user.has_perm(name) for name in names):  # type: ignore[attr-defined]
        return Agent.objects.all()
    return Agent.objects.filter(owner=user.pk)


def threads_for(user: Person) -> QuerySet[Thread]:
    """Return the threads of `user`. Threads of subagents are accessible through their runs."""
    return family_threads_for(user).filter(root=None)


def family_threads_for(user: Person) -> QuerySet[Thread]:
    """Return the threads of `user` and of the subagents there, for links to subagents' files."""
    if not user.is_authenticated:
        return Thread.objects.none()
    return Thread.objects.filter(owner=user.pk)


def runs_for(user: Person) -> QuerySet[Run]:
    """Return runs that `user` can read: own runs, or all with the permission `view_all_runs`.

    Excludes copies of runs in forks, which are read with their thread.
    """
    if not user.is_authenticated:
        return Run.objects.none()
    runs = Run.objects.filter(is_copy=False)
    return runs if _has(user, VIEW_ALL) else runs.filter(owner=user.pk)


def counted_runs_for(user: Person) -> QuerySet[Run]:
    """Return runs whose usage `user` can read, including those being erased, for correct sums."""
    if not user.is_authenticated:
        return Run.every.none()
    runs = Run.every.filter(is_copy=False)
    return runs if _has(user, VIEW_ALL) else runs.filter(owner=user.pk)


def counted_totals_for(user: Person) -> QuerySet[UsageTotal]:
    """Return the usage totals of ended runs, deleted ones included, that `user` can read.

    The permissions are those of `counted_runs_for`.
    """
    if not user.is_authenticated:
        return UsageTotal.objects.none()
    totals = UsageTotal.objects.all()
    return totals if _has(user, VIEW_ALL) else totals.filter(owner=user.pk)


def is_approver(user: Person, agent_id: str) -> bool:
    """Return whether `user` has the permission to approve for all agents or for this one."""
    if _has(user, APPROVE):
        return True
    return Agent.objects.filter(pk=agent_id, pk__in=approved_agents(user)).exists()


def approved_agents(user: Person) -> QuerySet[Agent]:
    """Return the agents for which `user` is an approver as a member of a group."""
    if not user.is_authenticated or not getattr(user, "is_active", False):
        return Agent.objects.none()
    groups = user.groups.values("pk")  # type: ignore[attr-defined]  # a user with permissions
    return Agent.objects.filter(
        pk__in=Agent.approver_groups.through.objects.filter(group__in=groups).values("agent")
    )


def watchable_runs_for(user: Person) -> QuerySet[Run]:
    """Return runs that `user` can watch: readable runs, and for approvers runs with requests.

    A private request does not show a run to approvers.
    """
    if not user.is_authenticated:
        return Run.objects.none()
    runs = Run.objects.filter(is_copy=False)
    if _has(user, VIEW_ALL):
        return runs
    mine = Q(owner=user.pk)
    requested = ApprovalRequest.objects.filter(is_private=False).values("run")
    if _has(user, APPROVE):
        mine |= Q(pk__in=requested)
    else:
        mine |= Q(agent_version__agent__in=approved_agents(user), pk__in=requested)
    return runs.filter(mine)


def unless_private(user: Person) -> Q:
    """Return a filter of requests without the private ones of other people's runs.

    No permission shows these requests, not even to superusers.
    """
    return Q(is_private=False) | Q(run__owner=user.pk)


def approvals_for(user: Person) -> QuerySet[ApprovalRequest]:
    """Return the requests that `user` can see, and can decide unless another person is required.

    These are requests of own runs, of kinds that the user can see, and of agents that a group of
    the user approves for. With the permission to approve, all requests. Private requests are
    visible only to the run's owner.
    """
    if not user.is_authenticated:
        return ApprovalRequest.objects.none()
    requests = ApprovalRequest.objects.filter(unless_private(user), run__is_erased=False)
    if _has(user, APPROVE):
        return requests
    mine = Q(run__owner=user.pk)
    for kind in feature_request_kinds():
        mine |= kind.seen_by(user)
    mine |= Q(run__agent_version__agent__in=approved_agents(user))
    return requests.filter(mine)


def grants_for(user: Person) -> QuerySet[ApprovalGrant]:
    """Return the grants that `user` can see.

    These are grants by the user, for the user's runs, and for agents that the user owns or approves
    for. With the permission to approve, all grants.
    """
    if not user.is_authenticated:
        return ApprovalGrant.objects.none()
    if _has(user, APPROVE):
        return ApprovalGrant.objects.all()
    return ApprovalGrant.objects.filter(
        Q(created_by=user.pk)
        | Q(owner=user.pk)
        | Q(agent__owner=user.pk)
        | Q(agent__in=approved_agents(user))
    )


def tokens_for(user: Person) -> QuerySet[ApiToken]:
    """Return the tokens of `user`. No permission gives access to other tokens."""
    if not user.is_authenticated:
        return ApiToken.objects.none()
    return ApiToken.objects.filter(user=user.pk)


def audit_for(user: Person) -> QuerySet[AuditEntry]:
    """Return the audit entries that `user` can read: all with the permission, otherwise none."""
    return AuditEntry.objects.all() if _has(user, VIEW_AUDIT) else AuditEntry.objects.none()
