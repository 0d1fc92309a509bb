"""The admin of machines: their state, and actions to drain them or declare them dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import SealedAdmin, person, tag
from agents.hidden_text import visible
from agents.models import Machine
from agents.models.database_clock import DatabaseNow
from agents.services.errors import ServiceError
from agents.services.machines.actions import (
    declare_dead,
    forget_machine,
    set_draining,
    state_of,
    with_threads,
)

_COLOURS = {"alive": "completed", "silent": "failed", "dead": "failed"}
_STATES = {
    "alive": _("alive"),
    "silent": _("silent"),
    "draining": _("draining"),
    "drained": _("drained"),
    "dead": _("dead"),
}


@admin.register(Machine)
class MachineAdmin(SealedAdmin):
    """The admin of machines, which register themselves. See docs/operations/scaling.md."""

    list_display = ["shown_name", "state", "threads", "last_seen", "shares_workspaces"]
    list_display_links = None
    ordering = ["name"]
    actions = ["drain", "undrain", "declare_dead", "forget"]
    fields: ClassVar[list[Any]] = ["shown_name", "state", "threads", "last_seen", "incarnation"]
    readonly_fields: ClassVar[list[Any]] = fields

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("agents.change_machine"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Machine]:
        return with_threads(super().get_queryset(request)).annotate(now=DatabaseNow())

    @admin.display(description=_("host"), ordering="name")
    def shown_name(self, machine: Machine) -> str:
        return visible(machine.name)

    @admin.display(description=_("state"))
    def state(self, machine: Any) -> SafeString:
        state = state_of(machine, machine.now, machine.moving)
        return tag(_COLOURS.get(state, "waiting"), _STATES[state])

    @admin.display(description=_("threads"), ordering="held")
    def threads(self, machine: Any) -> int:
        """Return the number of threads with files on this machine."""
        return int(machine.held)

    @admin.display(description=_("last sign of life"), ordering="seen_at")
    def last_seen(self, machine: Machine) -> datetime:
        return datetime.fromtimestamp(machine.seen_at, UTC)

    @admin.action(
        permissions=["operate"],
        description=_("Drain: start no runs, move threads to other machines"),
    )
    def drain(self, request: HttpRequest, queryset: QuerySet[Machine]) -> None:
        def drain(name: str) -> str:
            set_draining(name, True, by=person(request))
            return gettext("draining. Its threads move to other machines")

        self._do(request, queryset, drain)

    @admin.action(permissions=["operate"], description=_("Take a draining back"))
    def undrain(self, request: HttpRequest, queryset: QuerySet[Machine]) -> None:
        def undrain(name: str) -> str:
            set_draining(name, False, by=person(request))
            return gettext("it takes work again")

        self._do(request, queryset, undrain)

    @admin.action(
        permissions=["operate"], description=_("Declare dead: other machines take over its threads")
    )
    def declare_dead(self, request: HttpRequest, queryset: QuerySet[Machine]) -> None:
        def declare(name: str) -> str:
            moved = declare_dead(name, by=person(request))
            text = ngettext(
                "dead. Other machines can continue %(count)s thread from the last stored state",
                "dead. Other machines can continue %(count)s threads from the last stored state",
                moved,
            )
            return text % {"count": moved}

        self._do(request, queryset, declare)

    @admin.action(permissions=["operate"], description=_("Forget: remove it from the list"))
    def forget(self, request: HttpRequest, queryset: QuerySet[Machine]) -> None:
        def forget(name: str) -> str:
            forget_machine(name, by=person(request))
            return gettext("forgotten")

        self._do(request, queryset, forget)

    def _do(
        self, request: HttpRequest, queryset: QuerySet[Machine], action: Callable[[str], str]
    ) -> None:
        for name in list(self.chosen(request, queryset).values_list("pk", flat=True)):
            try:
                message = action(name)
            except ServiceError as error:
                text = gettext("Host %(host)s: not done. %(problem)s")
                values = {"host": visible(name), "problem": error}
                self.report(request, text % values, failed=True)
            else:  # The prefix keeps the name as it is: messages start with a capital letter.
                text = gettext("Host %(host)s: %(message)s.")
                self.report(request, text % {"host": visible(name), "message": message})
