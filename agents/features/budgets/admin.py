"""The budgets of agents and users, and their use."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.charts import bars, meter
from agents.doors.admin.journal import person
from agents.doors.admin.numbers import usd
from agents.features.budgets.actions import delete_budget, save_budget
from agents.features.budgets.models import OF_NOBODY, Allowance, Budget
from agents.features.budgets.scope import window_name
from agents.hidden_text import visible
from agents.models import Agent
from agents.selectors.usage import usage_by_day, zone_of
from agents.services.errors import NotFound

WINDOWS = 31
"""Maximum number of windows in a chart."""
DAYS = 30


class BudgetForm(forms.ModelForm):
    """A budget. Its owner and its period cannot change."""

    class Meta:
        model = Budget
        fields = ["user", "agent", "period", "max_tokens", "max_cost"]

    def clean(self) -> dict[str, Any]:
        # The model's own check is left out for a form without webhooks.
        data = self.cleaned_data
        if self.instance._state.adding and not (data.get("user") or data.get("agent")):
            raise ValidationError(OF_NOBODY)
        return data


@admin.register(Budget)
class BudgetAdmin(admin.ModelAdmin):
    """The admin of budgets. Saves use `save_budget`.

    The permission to change budgets also allows decisions on requests for a larger budget.
    """

    form = BudgetForm
    change_list_template = "admin/vel_budgets/budget/list.html"
    list_display = ["whose", "period", "max_tokens", "max_cost", "tokens_now", "cost_now"]
    list_filter = ["period", "agent"]
    list_select_related = ["user", "agent"]
    search_fields = ["agent__slug", f"user__{get_user_model().USERNAME_FIELD}"]
    autocomplete_fields = ["agent"]
    readonly_fields = ["tokens_chart", "cost_chart", "created_at"]
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": ["user", "agent", "period", "max_tokens", "max_cost"]}),
        (_("Used"), {"fields": ["tokens_chart", "cost_chart", "created_at"]}),
    ]

    def get_autocomplete_fields(self, request: HttpRequest) -> list[str]:
        """Return the fields with autocompletion: `user` only if the admin of users has a search."""
        users = self.admin_site._registry.get(get_user_model())
        found = ["user"] if users is not None and users.get_search_fields(request) else []
        return [*self.autocomplete_fields, *found]

    class Media:
        css = {"all": ["agents/admin/vel.css"]}

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> list[str]:
        fixed = [] if obj is None else ["user", "agent", "period"]
        return [*super().get_readonly_fields(request, obj), *fixed]

    def get_fieldsets(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        found = list(super().get_fieldsets(request, obj))
        return found[:1] if obj is None else found

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Also accept names: `?agent_slug=` and `?user_name=`, as pages of usage know them."""
        initial: dict[str, Any] = dict(super().get_changeform_initial_data(request))
        slug, name = (initial.pop(key, "").replace("\0", "") for key in ("agent_slug", "user_name"))
        user = get_user_model()
        if agent := Agent.objects.filter(slug=slug).first():
            initial["agent"] = agent.pk
        if found := user._default_manager.filter(**{user.USERNAME_FIELD: name}).first():
            initial["user"] = found.pk
        return initial

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except NotFound as error:
            self.message_user(request, error.message, messages.ERROR)
            return redirect("admin:vel_budgets_budget_changelist")

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        save_budget(obj)

    def delete_model(self, request: HttpRequest, obj: Budget) -> None:
        delete_budget(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Budget]) -> None:
        for budget in queryset:
            delete_budget(budget)

    @admin.display(description=_("of"), ordering="created_at")
    def whose(self, budget: Budget) -> str:
        return visible(budget.of)

    @admin.display(description=_("tokens in the present window"))
    def tokens_now(self, budget: Budget) -> SafeString | str:
        window = _present(budget)
        return _state(window.used_tokens, window.token_limit, _count) if window else "0"

    @admin.display(description=_("cost in the present window"))
    def cost_now(self, budget: Budget) -> SafeString | str:
        window = _present(budget)
        return _state(window.used_microusd, window.microusd_limit, usd) if window else usd(0)

    @admin.display(description=_("tokens"))
    def tokens_chart(self, budget: Budget) -> SafeString:
        rows = [(each.window, each.used_tokens, _count(each.used_tokens)) for each in _past(budget)]
        return _chart(rows, budget.max_tokens)

    @admin.display(description=_("cost"))
    def cost_chart(self, budget: Budget) -> SafeString:
        limit = None if budget.max_cost is None else int(budget.max_cost * 1_000_000)
        rows = [
            (each.window, each.used_microusd, usd(each.used_microusd)) for each in _past(budget)
        ]
        return _chart(rows, limit)

    # The use of all people

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.usage_page)
        return [path("usage/", view, name="vel_budgets_budget_usage"), *super().get_urls()]

    def usage_page(self, request: HttpRequest) -> HttpResponse:
        """Show the use in the last `DAYS` days, by the runs that the person may read."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        zone = zone_of(settings.TIME_ZONE)
        rows = usage_by_day(person(request), DAYS, zone)
        tokens: Counter[str] = Counter()
        cost: Counter[str] = Counter()
        for row in rows:
            tokens[str(row.day)] += row.tokens
            cost[str(row.day)] += row.microusd or 0
        # Days without use are included, since a chart without them would be misleading.
        today = timezone.now().astimezone(zone).date()
        days = [str(today - timedelta(days=ago)) for ago in reversed(range(DAYS))]
        displayed = [
            {
                "row": row,
                "user": visible(row.user),
                "model": visible(row.model),
                "cost": gettext("price not known") if row.microusd is None else usd(row.microusd),
            }
            for row in rows
        ]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": gettext("Usage of the last %(days)s days") % {"days": DAYS},
            "tokens": bars([(day, tokens[day], _count(tokens[day])) for day in days]),
            "cost": bars([(day, cost[day], usd(cost[day])) for day in days]),
            "most_tokens": _count(max(tokens.values(), default=0)),
            "most_cost": usd(max(cost.values(), default=0)),
            "days": gettext("%(first)s to %(last)s") % {"first": days[0], "last": days[-1]},
            "rows": displayed,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/vel_budgets/budget/usage.html", context)


def _present(budget: Budget) -> Allowance | None:
    name = window_name(budget.period, settings.TIME_ZONE)
    return Allowance.objects.filter(budget=budget, window=name).first()


def _past(budget: Budget) -> list[Allowance]:
    latest = Allowance.objects.filter(budget=budget).order_by("-window")[:WINDOWS]
    return list(reversed(latest))


def _state(used: int, limit: int | None, words: Any) -> SafeString | str:
    if limit is None:
        return str(words(used))
    text = gettext("%(used)s of %(limit)s") % {"used": words(used), "limit": words(limit)}
    return format_html("{} {}", meter(used, limit), text)


def _chart(rows: list[tuple[str, int, str]], limit: int | None) -> SafeString:
    table = format_html_join("", "<tr><td>{}</td><td>{}</td></tr>", ((a, c) for a, _, c in rows))
    return format_html(
        '<div>{}<details><summary>{}</summary><table class="vel-table"><tbody>{}</tbody>'
        "</table></details></div>",
        bars(rows, limit=limit),
        gettext("As a table"),
        table,
    )


def _count(number: int) -> str:
    return number_format(number, force_grouping=True)
