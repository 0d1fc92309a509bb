"""The admin of agents, with the changes of each version."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.admin.agent_actions import AgentActions, export_file, import_page, not_to_change
from agents.admin.agent_form import (
    AgentForm,
    relation_fieldsets,
    relation_form_fields,
    relations_shown,
)
from agents.admin.option_fields import option_fieldsets, options_shown
from agents.admin.rehearsal import rehearsal_page
from agents.admin.try_agent import try_page
from agents.doors.admin.agent_pages import agent_pages, with_links
from agents.doors.admin.journal import JournalAdmin
from agents.doors.admin.own_rows import OwnRowsFormSet
from agents.doors.admin.text import changes, shown_input
from agents.doors.agent_form.fields import option_form_fields
from agents.doors.agent_form.labels import option_text
from agents.hidden_text import visible
from agents.kernel.features import collect
from agents.kernel.options import option_fields
from agents.kernel.relations import relations
from agents.models import Agent, AgentVersion, Run, Thread
from agents.prompt_variables import left_as_text
from agents.services.agent_definitions.actions import build_spec, delete_agent, save_agent
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec
from sandbox.linux.probe import check_host

WITH_OPTIONS = {"Approval": ["approver_groups"], "Sandbox and network": ["limits_of_commands"]}
"""Fields that are not options, by the heading of options that they are listed under."""
VERSIONS_SHOWN = 30
BRACES_NAMED = 10


class VersionInline(admin.TabularInline):
    """The latest versions, newest first, each with its changes. Read-only."""

    model = AgentVersion
    fields: ClassVar[list[Any]] = ["number", "created_at", "created_by", "changed"]
    readonly_fields: ClassVar[list[Any]] = fields
    ordering = ["-number"]
    extra = max_num = 0
    can_delete = False
    verbose_name_plural = format_lazy(_("versions (the latest {number})"), number=VERSIONS_SHOWN)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user can view the agent, and therefore its versions."""
        return bool(
            request.user.has_perm("agents.view_agent")
            or request.user.has_perm("agents.change_agent")
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentVersion]:
        before = AgentVersion.objects.filter(agent=OuterRef("agent"), number=OuterRef("number") - 1)
        return (
            AgentVersion.objects.filter(number__gt=F("agent__version") - VERSIONS_SHOWN)
            .select_related("created_by", "agent")
            .annotate(spec_before=Subquery(before.values("spec")[:1]))
            .order_by("-number")
        )

    @admin.display(description=_("what it changed"))
    def changed(self, version: Any) -> str:
        first = version.spec_before is None
        return render_to_string(
            "admin/agents/agent/version_changes.html",
            {
                "spec": shown_input(version.spec),
                "changes": []
                if first
                else changes(
                    AgentSpec.completed(version.spec_before), AgentSpec.completed(version.spec)
                ),
                "is_first": first,
            },
        )


@admin.register(Agent)
class AgentAdmin(AgentActions, admin.ModelAdmin):
    """The admin of agents. `save_agent` stores each change as a version with an author."""

    form = AgentForm
    list_display = [
        "shown_name",
        "slug",
        "provider_in_force",
        "model_in_force",
        "profile",
        "sandbox",
        "network",
        "version",
        "is_active",
    ]
    list_filter = ["is_active", "profile", "sandbox", "network", "provider", "everyone", "groups"]
    search_fields = ["name", "slug", "description", "model"]
    search_help_text = _("Words of a name, a slug, a description or a model.")
    ordering = ["name", "id"]
    prepopulated_fields = {"slug": ["name"]}
    raw_id_fields = ["owner"]
    filter_horizontal = ["groups", "approver_groups"]
    readonly_fields = [
        "version",
        "created_at",
        "updated_at",
        "limits_of_commands",
    ]
    save_on_top = True
    show_full_result_count = False
    change_list_template = "admin/agents/agent/list.html"
    actions = [
        "duplicate_selected",
        "activate_selected",
        "deactivate_selected",
        "export_selected",
        "erase_conversations_selected",
    ]
    fieldsets = [
        (None, {"fields": ["name", "slug", "description", "is_active"]}),
        (_("Sharing"), {"fields": ["owner", "everyone", "groups", "mcp_tool"]}),
        (_("Record"), {"fields": ["version", "created_at", "updated_at"]}),
    ]

    class Media:
        css = {"all": ["agents/admin/vel.css", "agents/admin/skills.css"]}

    @admin.display(description=_("name"), ordering="name")
    def shown_name(self, agent: Agent) -> str:
        return visible(agent.name)

    @admin.display(description=_("provider"), ordering="provider")
    def provider_in_force(self, agent: Agent) -> str:
        return _in_force(agent, "provider")

    @admin.display(description=_("model"), ordering="model")
    def model_in_force(self, agent: Agent) -> str:
        return _in_force(agent, "model")

    @admin.display(description=_("limits of commands"))
    def limits_of_commands(self, agent: Agent) -> str:
        """Return the mechanisms that enforce them on this host. Workers may differ."""
        report = check_host()
        kept = (f"{limit.limit}: {limit.by}" for limit in report.limits)
        limits = "; ".join(kept) or gettext("no commands can run")
        return gettext("On this host: %(limits)s") % {"limits": limits}

    def get_inlines(self, request: HttpRequest, obj: Agent | None) -> list[Any]:
        of_features = collect("admin", "AGENT_INLINES", skip_broken=True)
        return [*(inline for _, inline in of_features), VersionInline]

    def get_form(
        self, request: HttpRequest, obj: Agent | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        may_change = partial(self._may_change, request, obj)
        fields = {
            **option_form_fields(obj or Agent(), may_change),
            **relation_form_fields(may_change),
        }
        form = type("AgentForm", (AgentForm,), fields)
        return super().get_form(request, obj, change, **{**kwargs, "form": form})

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        identity, sharing, record = super().get_fieldsets(request, obj)
        may_change = partial(self._may_change, request, obj)
        of_options = [
            (title, {"fields": [*fields, *WITH_OPTIONS.get(title, ())]})
            for title, fields in option_fieldsets(may_change)
        ]
        at = [title for title, _ in of_options].index("Other services")
        of_options[at:at] = relation_fieldsets(may_change)
        if obj is not None and self.has_change_permission(request, obj):
            title, options = identity
            identity = (title, {**options, "fields": [*options["fields"], "opened"]})
        found = with_links([identity, *of_options])
        translated = [(title and option_text(title), options) for title, options in found]
        return [*translated, sharing, record]

    def _may_change(self, request: HttpRequest, obj: Agent | None, name: str) -> bool:
        """Return whether the user can change the option or relation `name` of this agent."""
        may_change = (
            self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        )
        return may_change and name not in not_to_change(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[Any]:
        own = {*option_fields(), *(relation.name for relation in relations())}
        return [
            *super().get_readonly_fields(request, obj),
            *(name for name in not_to_change(request) if name not in own),
            *options_shown(),
            *relations_shown(),
            *(page.field for page in agent_pages()),
        ]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"owner": request.user.pk, **super().get_changeform_initial_data(request)}

    def save_model(self, request: HttpRequest, obj: Agent, form: AgentForm, change: bool) -> None:
        """Do nothing: `save_related` saves the agent with its relations as one version."""

    def save_related(
        self, request: HttpRequest, form: AgentForm, formsets: Any, change: Any
    ) -> None:
        """Save the agent with its rows of features."""
        own = [formset for formset in formsets if isinstance(formset, OwnRowsFormSet)]
        save_agent(
            form.instance,
            by_id=request.user.pk,
            groups=form.cleaned_data.get("groups"),
            approver_groups=form.cleaned_data.get("approver_groups"),
            related={**form.related, **{each.relation: each.kept() for each in own}},
        )
        warn_of_braces(request, form)
        super().save_related(request, form, formsets, change)

    def save_formset(
        self, request: HttpRequest, form: AgentForm, formset: Any, change: Any
    ) -> None:
        """Save an inline.

        For an `OwnRowsFormSet`, only record the changes for the history: its rows are saved
        already.
        """
        formset.save(commit=not isinstance(formset, OwnRowsFormSet))

    def delete_model(self, request: HttpRequest, obj: Agent) -> None:
        delete_agent(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        for agent in queryset:
            delete_agent(agent)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return (
            super()
            .get_queryset(request)
            .prefetch_related(*(relation.name for relation in relations()))
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Refuse to delete agents with runs or threads, with one message for each agent."""
        text = gettext(
            "%(agent)s has %(runs)s runs and %(threads)s threads. Deactivate it instead: it starts "
            "no new runs then, and its history stays. To delete it permanently, deactivate it and "
            "run the action “Erase conversations” first."
        )
        used = [
            text % {"agent": visible(agent.name), "runs": runs, "threads": threads}
            for agent in objs
            for runs, threads in [_uses(agent)]
            if runs or threads
        ]
        if used:
            return [], {}, set(), used
        shown, counts, needed, protected = super().get_deleted_objects(objs, request)
        # Rows of journals, such as those of its memory, are deleted with the agent.
        journals = {
            model._meta.verbose_name
            for model, page in self.admin_site._registry.items()
            if isinstance(page, JournalAdmin)
        }
        return shown, counts, needed - journals, protected

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        runs = (
            f"{reverse('admin:agents_run_changelist')}?agent_version__agent__id__exact={object_id}"
        )
        context = {**(extra_context or {}), "runs_url": runs}
        return super().change_view(request, object_id, form_url, context)

    def get_urls(self) -> list[Any]:
        rehearse = self.admin_site.admin_view(partial(rehearsal_page, self))
        tried = self.admin_site.admin_view(partial(try_page, self))
        export = self.admin_site.admin_view(partial(export_file, self))
        importing = self.admin_site.admin_view(partial(import_page, self))
        own = [
            path("import/", importing, name="agents_agent_import"),
            path("<str:object_id>/try/", tried, name="agents_agent_try"),
            path("<str:object_id>/export/", export, name="agents_agent_export"),
            path("<str:object_id>/rehearse/", rehearse, name="agents_agent_rehearse"),
            *(
                path(
                    f"<str:object_id>/{page.name}/",
                    self.admin_site.admin_view(partial(page.view, self)),
                    name=f"agents_agent_{page.name}",
                )
                for page in agent_pages()
            ),
        ]
        return [*own, *super().get_urls()]


def warn_of_braces(request: HttpRequest, form: AgentForm) -> None:
    """Warn about text in a new prompt that looks like a variable but is not one."""
    left = left_as_text(form.instance.system_prompt) if "system_prompt" in form.changed_data else []
    if left:
        named = ", ".join(visible(text) for text in left[:BRACES_NAMED])
        text = gettext("These stay in the prompt as they are, as text: %(names)s.")
        messages.warning(request, text % {"names": named})


def _in_force(agent: Agent, field: str) -> str:
    """Return the agent's value, or the default from the settings."""
    try:
        return visible(getattr(build_spec(agent), field))
    except InvalidRequest as error:
        return gettext("invalid: %(problem)s") % {"problem": error}


def _uses(agent: Agent) -> tuple[int, int]:
    runs = Run.every.filter(agent_version__agent=agent).count()
    return runs, Thread.every.filter(agent=agent).count()
