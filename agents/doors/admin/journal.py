"""Read-only admin pages of rows that only services and drivers write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import Promise, cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, override

MOST_COUNTED = 10_000


class FirstPages(Paginator):
    """A paginator of the first rows, because counting all rows of a large table is slow.

    To find older rows, the user filters the list.
    """

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        assert isinstance(rows, models.QuerySet)
        return rows.order_by().values("pk")[:MOST_COUNTED].count()


def _takes_all(request: HttpRequest) -> bool:
    """Return whether the user chose "Select all" instead of ticking rows."""
    return request.POST.get("select_across", "0") != "0"


class SealedAdmin(admin.ModelAdmin):
    """An admin without forms to add, change or delete rows. Named actions change them."""

    list_per_page = 100
    paginator = FirstPages
    show_full_result_count = False

    class Media:
        css = {"all": ["agents/admin/vel.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def response_action(
        self, request: HttpRequest, queryset: models.QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Run an action, unless it is for all rows of a list with more than `MOST_COUNTED` rows."""
        if _takes_all(request) and queryset.order_by().values("pk")[MOST_COUNTED:].exists():
            text = gettext(
                "Nothing was changed: this list has more than %(most)s %(rows)s, which is too many "
                "for one action. Filter the list and try again."
            )
            values = {
                "most": number_format(MOST_COUNTED, force_grouping=True),
                "rows": self.opts.verbose_name_plural,
            }
            self.report(request, text % values, failed=True)
            return None
        return super().response_action(request, queryset, *more, **named)

    def chosen(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Return the rows of an action: the ticked rows, or all rows of the list if the user chose
        so.

        Ticked rows that no longer match the list's filter are included.
        """
        if _takes_all(request):
            return queryset
        ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
        return self.get_queryset(request).filter(pk__in=ticked)

    def report(self, request: HttpRequest, text: str, *, failed: bool = False) -> None:
        self.message_user(request, text, messages.ERROR if failed else messages.SUCCESS)


class JournalAdmin(SealedAdmin):
    """A sealed admin in which each row has a page instead of a form."""

    page_template = ""
    goes_with_user = False
    """Whether its rows may be deleted together with a user who has no runs."""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the row's page. For a POST, `act_on_row` returns a response or more context."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            text = gettext("There is no %(name)s %(id)s that you may see.")
            values = {"name": self.opts.verbose_name, "id": object_id}
            self.report(request, text % values, failed=True)
            return HttpResponseRedirect(reverse(f"{self.admin_site.name}:index"))
        context: dict[str, Any] = {}
        if request.method == "POST":
            answer = self.act_on_row(request, row)
            if isinstance(answer, HttpResponse):
                return answer
            context = answer
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "media": self.media,
            **self.page_context(request, row),
            **context,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.page_template, context)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the context of the template of the row's page, including `title`."""
        raise NotImplementedError

    def act_on_row(self, request: HttpRequest, row: Any) -> HttpResponse | dict[str, Any]:
        """Handle a POST of the row's page: return a response, or the context of the page."""
        raise PermissionDenied


def person(request: HttpRequest) -> AbstractBaseUser:
    """Return the signed-in user. The admin refuses all others."""
    if not isinstance(request.user, AbstractBaseUser):
        raise PermissionDenied
    return request.user


def in_english(text: str | Promise) -> str:
    """Return a text for the database, which stores the same in all languages."""
    with override("en"):
        return str(text)


def tag(value: str, label: str | Promise) -> SafeString:
    """Return a status as a colored label."""
    return format_html('<span class="vel-tag vel-{}">{}</span>', value, label)
