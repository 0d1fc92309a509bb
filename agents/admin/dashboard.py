"""The admin's home page: pending requests, runs, costs and problems."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext

from agents.doors.admin.charts import bars
from agents.doors.admin.dashboard_boxes import dashboard_boxes
from agents.doors.admin.journal import person
from agents.doors.admin.numbers import span, usd
from agents.hidden_text import visible
from agents.models import Agent, ApprovalRequest, AuditEntry, Run
from agents.selectors.dashboard import count_runs, failing_agents, work_state
from agents.selectors.queue import pending_for
from agents.selectors.usage import usage_by_day, zone_of
from agents.selectors.visible import VIEW_ALL, Person, audit_for
from agents.states import RunStatus

DAYS = 14
SHOWN = 5
_HOUR, _DAY = 3_600, 86_400


def dashboard(site: AdminSite, request: HttpRequest) -> dict[str, Any]:
    """Return the parts of the page that the user may see, by name.

    A part requires the permission to view its rows, and `work` also `VIEW_ALL`. Users who are not
    staff get none.
    """
    if not request.user.is_authenticated or not request.user.is_staff:
        return {}
    user = person(request)

    def sees(model: Any) -> bool:
        page = site._registry.get(model)
        return page is not None and page.has_view_permission(request)

    parts: dict[str, Any] = {"days": DAYS}
    if sees(ApprovalRequest):
        parts["waiting"] = _waiting(user)
    if sees(Run):
        parts |= _runs(user, links=sees(Agent))
        parts["usage"] = _usage(user)
        if request.user.has_perm(VIEW_ALL):
            parts["work"] = _work()
    boxes = [
        {"template": box.template, "content": box.content(user)}
        for box in dashboard_boxes()
        if sees(box.model)
    ]
    if boxes:
        parts["boxes"] = boxes
    if sees(AuditEntry):
        parts["audit"] = [
            {
                "entry": entry,
                "who": visible(entry.actor) or gettext("nobody"),
                "target": visible(entry.target),
            }
            for entry in audit_for(user)[:SHOWN]
        ]
    return parts


def _waiting(user: Person) -> dict[str, Any]:
    now = timezone.now()
    requests = pending_for(user).order_by("created_at")
    times = [(now - when).total_seconds() for when in requests.values_list("created_at", flat=True)]
    oldest = requests.select_related("run__agent_version__agent")[:SHOWN]
    return {
        "count": len(times),
        "ages": [
            (gettext("within the hour"), sum(1 for age in times if age < _HOUR)),
            (
                gettext("an hour to a day ago"),
                sum(1 for age in times if _HOUR <= age < _DAY),
            ),
            (gettext("more than a day ago"), sum(1 for age in times if age >= _DAY)),
        ],
        "oldest": [
            {
                "pk": each.pk,
                "tool": visible(each.tool),
                "agent": visible(each.run.agent_version.agent.slug),
                "age": span(now - each.created_at),
            }
            for each in oldest
        ],
    }


def _runs(user: Person, *, links: bool) -> dict[str, Any]:
    zone = zone_of(settings.TIME_ZONE)
    counts = count_runs(user, DAYS, zone)
    failing = failing_agents(user, DAYS, zone)
    words = gettext("%(runs)s runs, %(failed)s failed")
    chart = [
        (str(day), runs, words % {"runs": runs, "failed": failed})
        for day, runs, failed in counts.by_day
    ]
    return {
        "runs": {
            "statuses": [
                (status, status.label, counts.today.get(status, 0), counts.in_all[status])
                for status in RunStatus
                if status in counts.in_all
            ],
            "today": sum(counts.today.values()),
            "in_all": sum(counts.in_all.values()),
            "chart": bars(chart),
            "most": max(runs for _, runs, _ in counts.by_day),
            "by_day": counts.by_day,
        },
        "failing": [
            {
                "slug": visible(each.slug),
                "url": reverse("admin:agents_agent_change", args=[each.agent_id]) if links else "",
                "runs_url": f"{reverse('admin:agents_run_changelist')}?status__exact=failed"
                f"&agent_version__agent__id__exact={each.agent_id}",
                "failed": each.failed,
                "runs": each.runs,
                "last": each.last,
            }
            for each in failing
        ],
    }


def _usage(user: Person) -> dict[str, Any]:
    rows = usage_by_day(user, DAYS, zone_of(settings.TIME_ZONE))
    today = timezone.now().astimezone(zone_of(settings.TIME_ZONE)).date()
    days = [str(today - timedelta(days=ago)) for ago in reversed(range(DAYS))]
    tokens: Counter[str] = Counter()
    cost: Counter[str] = Counter()
    by_agent: dict[str, list[int]] = {}
    for row in rows:
        tokens[str(row.day)] += row.tokens
        cost[str(row.day)] += row.microusd or 0
        agent = by_agent.setdefault(row.agent, [0, 0, 0])
        agent[0] += row.tokens
        agent[1] += row.microusd or 0
        agent[2] += row.microusd is None
    dearest = sorted(by_agent.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    words = gettext("%(count)s tokens")
    return {
        "tokens": bars(
            [(day, tokens[day], words % {"count": _count(tokens[day])}) for day in days]
        ),
        "cost": bars([(day, cost[day], usd(cost[day])) for day in days]),
        "by_day": [(day, _count(tokens[day]), usd(cost[day])) for day in days],
        "all_tokens": _count(sum(tokens.values())),
        "all_cost": usd(sum(cost.values())),
        "by_agent": [
            (visible(slug), _count(used), usd(spent), unpriced > 0)
            for slug, (used, spent, unpriced) in dearest[:SHOWN]
        ],
    }


def _count(number: int) -> str:
    return number_format(number, force_grouping=True)


def _work() -> dict[str, Any]:
    state = work_state()
    age = state.oldest_seconds
    return {
        "state": state,
        "oldest": "" if age is None else span(timedelta(seconds=age)),
    }
