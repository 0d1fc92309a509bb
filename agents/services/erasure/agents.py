"""Erase an archived agent: first the conversations with it, then the agent itself.

An agent is archived by `set_active(…, False)`. Erasing may take several calls, because files of
threads on other hosts are removed there first.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import Q

from agents.models import Agent, Run, Thread
from agents.services.agent_definitions.actions import delete_agent
from agents.services.agent_definitions.rights import has_permission
from agents.services.erasure.actions import (
    empty_log,
    erase_thread,
    finish_erasures,
    overwrite_deleted_bytes,
)
from agents.services.errors import Conflict, NotAllowed
from agents.states import ENDED_RUNS

NEEDED = ("agents.delete_agent", "agents.erase_thread")


@dataclass(frozen=True, slots=True)
class AgentUse:
    """The use of an agent, with ids of conversations.

    `threads` are the conversations with the agent. `others` are conversations with other agents, in
    which this agent has runs.
    """

    threads: list[str]
    runs: int
    open_runs: int
    others: list[str]


def use_of_agent(agent: Agent) -> AgentUse:
    """Return the conversations that `erase_agent` would erase, or that prevent it."""
    runs = Run.objects.filter(_of(agent))
    families = set(runs.order_by().values_list("thread__root", "thread"))
    roots = {root or thread for root, thread in families}
    own = set(Thread.objects.filter(agent=agent, root=None).values_list("pk", flat=True))
    inside = Thread.objects.filter(agent=agent).exclude(root=None)
    roots |= {root for root in inside.values_list("root", flat=True) if root}
    return AgentUse(
        threads=sorted(own),
        runs=runs.count(),
        open_runs=_open_runs(own, agent),
        others=sorted(roots - own),
    )


def erase_conversations(agent: Agent, *, by: AbstractBaseUser) -> int:
    """Erase all conversations with an archived agent, and return their number.

    Raises `NotAllowed`, and `Conflict` if the agent is not archived (code `agent_active`), if a run
    has not ended (`thread_busy`), or if conversations of other agents contain runs of it
    (`agent_used`): then nothing is erased. If a run
    starts meanwhile, some conversations are erased before the `Conflict`.
    """
    missing = [needed for needed in NEEDED if not has_permission(by, needed)]
    if missing:
        raise NotAllowed(f"This needs the permission {' and '.join(missing)}.")
    if Agent.objects.get(pk=agent.pk).is_active:
        raise Conflict(f"{agent.slug} is active: archive it first.", code="agent_active")
    use = use_of_agent(agent)
    if use.open_runs:
        raise Conflict(
            f"{use.open_runs} runs with {agent.slug} have not ended: cancel them first.",
            code="thread_busy",
        )
    if use.others:
        raise Conflict(
            f"{agent.slug} has worked as a subagent in {len(use.others)} conversations of other "
            f"agents: erase those first ({', '.join(use.others[:5])}).",
            code="agent_used",
        )
    # Each in a separate transaction: there may be many, with many rows to lock.
    for thread in use.threads:
        erase_thread(thread, by=by)
    return len(use.threads)


def erase_agent(agent: Agent, *, by: AbstractBaseUser) -> bool:
    """Erase an archived agent with its conversations, memory, own skills and versions.

    Returns False if files of conversations are still to be removed, by a worker or another host:
    then the agent stays, and the next call continues. Totals of tokens and cost, and the audit log,
    stay. Raises the same errors as `erase_conversations`.
    """
    erase_conversations(agent, by=by)
    finish_erasures()
    if Thread.every.filter(agent=agent).exists() or Run.every.filter(_of(agent)).exists():
        return False
    with transaction.atomic():
        overwrite_deleted_bytes()
        delete_agent(agent)
    empty_log()
    return True


def _of(agent: Agent) -> Q:
    return Q(agent_version__agent=agent)


def _open_runs(threads: set[str], agent: Agent) -> int:
    family = Q(thread__in=threads) | Q(thread__root__in=threads)
    return Run.objects.filter(family | _of(agent)).exclude(status__in=ENDED_RUNS).count()
