"""Test of another policy with the calls that an agent has made."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Length
from django.utils import timezone

from agents.events.append import dump
from agents.kernel.proposals import proposal_kinds
from agents.middleware.inputs import checked_input, input_names
from agents.middleware.registry import Toolset, toolset_for
from agents.models import Agent, Run, ToolCall
from agents.policy import Verdict, judge
from agents.services.agent_definitions.actions import build_spec, check_policy
from agents.services.errors import InvalidRequest
from agents.spec import Action, AgentSpec

MAX_DAYS = 365
MAX_CALLS = 20_000
MAX_CHARACTERS = 20_000_000
"""Limit for the inputs of all calls that are read."""
EXAMPLES = 50
CHUNK = 500
"""Calls in memory at the same time, since an input may be large."""
SHORT_INPUT = 200

Counts = dict[Action, int]


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """The number of calls of one tool that the old and the new policy allow, ask about and deny."""

    before: Counts
    after: Counts
    changed: int


@dataclass(frozen=True, slots=True)
class Example:
    """A past call with its verdict by the present policy and by the new one.

    `source` names the reason of the new verdict, like `rule 2`. `input` is the start of the call's
    input as JSON, as the agent wrote it. It is not escaped for a page.
    """

    run_id: str
    call_id: str
    tool: str
    input: str
    status: str
    before: Action
    after: Action
    source: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a test of a policy. With `cut`, there are older calls that were not read.

    `examples` has the newest changed calls, at most `EXAMPLES`; `latest` the newest calls, changed
    or not, as many as requested. `left_out` counts calls with an invalid input, to which no policy
    applies. `hidden` counts changed calls in runs that the person may not read.
    """

    days: int
    calls: int
    cut: bool
    left_out: int
    changed: int
    tools: dict[str, ToolCounts]
    examples: list[Example]
    hidden: int
    latest: list[Example] = field(default_factory=list)


@dataclass(slots=True)
class _Tally:
    tools: dict[str, ToolCounts] = field(default_factory=dict)
    changed: list[Example] = field(default_factory=list)
    latest: list[Example] = field(default_factory=list)
    most_latest: int = 0
    calls: int = 0
    left_out: int = 0
    changes: int = 0
    hidden: int = 0


def rehearse(
    agent: Agent,
    spec: AgentSpec,
    *,
    days: int,
    limit: int = MAX_CALLS,
    readable: QuerySet[Run] | None = None,
    only_readable: bool = False,
    latest: int = 0,
) -> Rehearsal:
    """Compare the verdicts of the agent's present policy and of `spec` on past calls.

    Reads the newest `limit` calls of the agent's runs in the last `days`, with inputs of at most
    `MAX_CHARACTERS` in all. Grants are ignored, although a grant can allow a call that requires
    approval. Examples are only from the runs `readable` (None: all), and with `only_readable` the
    numbers are, too. `latest` is the number of calls in `Rehearsal.latest`. Raises `InvalidRequest`
    for a policy that could not be saved.
    """
    if not 1 <= days <= MAX_DAYS:
        raise InvalidRequest(f"`days` must be 1 to {MAX_DAYS}.")
    check_policy(spec)
    present = build_spec(agent)
    since = timezone.now() - timedelta(days=days)
    calls = ToolCall.objects.filter(
        run__agent_version__agent=agent, run__created_at__gte=since
    ).order_by("-id")
    if only_readable and readable is not None:
        calls = calls.filter(run__in=readable)
    ids, cut = _newest(calls, limit)
    tally = _Tally(most_latest=latest)
    policies = [(each, toolset_for(each, has_left_out=True)) for each in (present, spec)]
    for rows in _chunks(ids):
        seen = _readable_among({row["run_id"] for row in rows}, readable)
        for row in rows:
            _count(tally, policies, row, seen)
    return Rehearsal(
        days=days,
        calls=tally.calls,
        cut=cut,
        left_out=tally.left_out,
        changed=tally.changes,
        tools=dict(sorted(tally.tools.items())),
        examples=tally.changed,
        hidden=tally.hidden,
        latest=tally.latest,
    )


def with_policy(agent: Agent, policy: dict[str, Any]) -> AgentSpec:
    """Return the agent's present definition with the policy in `policy`.

    `policy` has `approval_rules` and `interrupt_on`. Raises `InvalidRequest` as for an agent that
    is saved.
    """
    changed = Agent(
        **{name.attname: getattr(agent, name.attname) for name in Agent._meta.concrete_fields}
    )
    for name in ("approval_rules", "interrupt_on"):
        if name in policy:
            setattr(changed, name, policy[name])
    return build_spec(changed)


def _newest(calls: QuerySet[ToolCall], limit: int) -> tuple[list[int], bool]:
    """Return the ids of the calls to read, and whether there are more."""
    ids: list[int] = []
    left = MAX_CHARACTERS
    for call_id, size in calls.values_list("id", Length("input"))[: limit + 1]:
        left -= size
        if len(ids) == limit or (ids and left < 0):
            return ids, True
        ids.append(call_id)
    return ids, False


def _chunks(ids: list[int]) -> Iterator[Sequence[Mapping[str, Any]]]:
    for start in range(0, len(ids), CHUNK):
        rows = ToolCall.objects.filter(pk__in=ids[start : start + CHUNK]).order_by("-id")
        yield list(rows.values("run_id", "call_id", "tool", "effect", "input", "status"))


def _readable_among(run_ids: set[str], readable: QuerySet[Run] | None) -> Collection[str]:
    if readable is None:
        return run_ids
    return set(readable.filter(pk__in=run_ids).values_list("pk", flat=True))


def _count(
    tally: _Tally,
    policies: Sequence[tuple[AgentSpec, Toolset]],
    row: Mapping[str, Any],
    seen: Collection[str],
) -> None:
    given = json.loads(row["input"])
    before, after = (_verdict(*each, row, given) for each in policies)
    if before is None or after is None:
        tally.left_out += 1
        return
    tally.calls += 1
    counts = tally.tools.get(row["tool"]) or ToolCounts(_zero(), _zero(), 0)
    counts.before[before.action] += 1
    counts.after[after.action] += 1
    if row["run_id"] in seen and len(tally.latest) < tally.most_latest:
        tally.latest.append(_example(row, given, before, after))
    if before.action != after.action:
        tally.changes += 1
        counts = ToolCounts(counts.before, counts.after, counts.changed + 1)
        if row["run_id"] not in seen:
            tally.hidden += 1
        elif len(tally.changed) < EXAMPLES:
            tally.changed.append(_example(row, given, before, after))
    tally.tools[row["tool"]] = counts


def _zero() -> Counts:
    return {"allow": 0, "ask": 0, "deny": 0}


def _verdict(
    spec: AgentSpec, toolset: Toolset, row: Mapping[str, Any], given: Any
) -> Verdict | None:
    """Return the verdict of `spec` on a call, or None if the call's input is invalid."""
    tool = toolset.tools.get(row["tool"])
    if tool is None:
        # The agent no longer has the tool.
        kinds = (kind for kind in proposal_kinds().values() if kind.rule == row["tool"])
        return judge(spec, row["tool"], row["effect"], given, proposes=next(kinds, None))
    checked = checked_input(toolset, tool.name, given)
    if isinstance(checked, str):
        return None
    proposed = tool.proposed(checked[1])
    reads = input_names(tool.input_model)
    tool, tried = checked[0], checked[0].trial is not None
    return judge(
        spec,
        tool.name,
        tool.effect,
        given,
        proposes=None if proposed is None else proposed.kind,
        tried=tried,
        reads=reads,
        asks=tool.asks,
    )


def _example(row: Mapping[str, Any], given: Any, before: Verdict, after: Verdict) -> Example:
    text = dump(given)
    return Example(
        run_id=row["run_id"],
        call_id=row["call_id"],
        tool=row["tool"],
        input=text if len(text) <= SHORT_INPUT else f"{text[:SHORT_INPUT]}…",
        status=row["status"],
        before=before.action,
        after=after.action,
        source=after.source,
    )
