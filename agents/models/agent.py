"""An agent as its team defines it, and the versions that runs pin."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.ids import ID_LENGTH, new_id
from agents.models.json_text import JSONTextField


class ToolProfile(models.TextChoices):
    FULL = "full", _("full: planning, files, execution")
    SANDBOX_ONLY = "sandbox_only", _("sandbox only: todos and execute_in_sandbox")


class SkillMode(models.TextChoices):
    TOOL_RESULT = "tool_result", _("as the result of loading it")
    SYSTEM_PROMPT = "system_prompt", _("in the system prompt: each change costs the prompt cache")


class NetworkChoice(models.TextChoices):
    NONE = "none", _("none")
    ALLOWLIST = "allowlist", _("allow-list")
    FULL = "full", _("any public address")


class Agent(models.Model):
    """What a team calls an agent. Each save that changes it is kept as an `AgentVersion`."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=new_id, editable=False)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=100, unique=True)
    description = models.TextField(blank=True)
    system_prompt = models.TextField(
        blank=True, help_text=_("What the agent is told about itself (its AGENTS.md).")
    )
    provider = models.CharField(
        max_length=50, blank=True, help_text=_("Empty: the provider of the settings.")
    )
    model = models.CharField(
        max_length=200, blank=True, help_text=_("Empty: the default model of the provider.")
    )
    fallbacks = models.JSONField(
        default=list,
        blank=True,
        help_text=_(
            "Models that go on, one after the other, when the one before is down, as "
            '[{"provider": "anthropic", "model": "claude-haiku-4-5"}]; at most 3 '
            "(docs/fallbacks.md)."
        ),
    )
    max_output_tokens = models.PositiveIntegerField(default=16_000)
    thinking = models.CharField(
        max_length=20,
        blank=True,
        choices=[("adaptive", _("adaptive")), ("disabled", _("off"))],
        help_text=_("Empty: the model's own default."),
    )
    effort = models.CharField(
        max_length=20,
        blank=True,
        choices=[(level, level) for level in ("low", "medium", "high", "max")],
        help_text=_("How much the model spends on an answer. Empty: the model's own default."),
    )
    profile = models.CharField(max_length=20, choices=ToolProfile.choices, default=ToolProfile.FULL)
    tools = models.JSONField(
        null=True,
        blank=True,
        help_text=_(
            'Names of the tools it may use, as ["ls", "read_file"]. Empty: all of its profile.'
        ),
    )
    interrupt_on = models.JSONField(
        default=dict,
        blank=True,
        help_text=_(
            'Tools that wait for a person, as {"execute": true} or '
            '{"edit_file": {"allowed_decisions": ["approve", "reject"]}}; false never asks.'
        ),
    )
    approval_rules = models.JSONField(
        default=list,
        blank=True,
        help_text=_(
            'Rules before these, the first that fits decides, as [{"tool": "execute", '
            '"when": {"command": "rm .*"}, "action": "deny", "reason": "Nothing is deleted."}].'
        ),
    )
    approvals_needed = models.PositiveSmallIntegerField(
        default=1,
        choices=[(1, _("one person")), (2, _("two different people"))],
        help_text=_("How many people must approve a call that waits."),
    )
    self_approval = models.BooleanField(
        default=True, help_text=_("People may approve the calls of their own runs.")
    )
    approval_expiry = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Seconds after which a request is rejected by itself. Empty: never."),
    )
    approver_groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="approves_for",
        help_text=_("People of these groups decide what waits in this agent's runs."),
    )
    builtin_skills = models.BooleanField(
        default=True, help_text=_("Whether it has the skills that come with Vel.")
    )
    skill_mode = models.CharField(
        max_length=20,
        choices=SkillMode.choices,
        default=SkillMode.TOOL_RESULT,
        help_text=_("Where the instructions of a loaded skill stand."),
    )
    sandbox = models.BooleanField(
        default=True, help_text=_("Off: files in the database and no tools that run code.")
    )
    network = models.CharField(
        max_length=20, choices=NetworkChoice.choices, default=NetworkChoice.NONE
    )
    allowed_hosts = models.JSONField(
        default=list,
        blank=True,
        help_text=_(
            'What the allow-list holds, as ["pypi.org", "*.example.org", "api.example.com:8443"].'
        ),
    )
    toolbox = models.CharField(
        max_length=100,
        blank=True,
        help_text=_("A Python environment that the operator built. Empty: the system's Python."),
    )
    command_timeout = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text=_(
            "Seconds a command may take unless the call says otherwise. Empty: the tool's own."
        ),
    )
    output_schema = JSONTextField(
        null=True,
        blank=True,
        help_text=_(
            "The form of its final answers, as JSON Schema: "
            '{"type": "object", "properties": {"total": {"type": "number"}}, "required": '
            '["total"]}. Empty: it answers in words.'
        ),
    )
    output_repairs = models.PositiveSmallIntegerField(
        default=2,
        validators=[MaxValueValidator(5)],
        help_text=_("How often it is asked again when a final answer does not fit its form."),
    )
    guardrails = models.JSONField(
        default=list,
        blank=True,
        help_text=_("Checks of what it is told, says and does (docs/guards.md)."),
    )
    on_stuck = models.CharField(
        max_length=10,
        choices=[("note", _("tell the model")), ("end", _("tell the model, then end the run"))],
        default="note",
        help_text=_("When it makes the same calls with the same results again and again."),
    )
    tool_retries = models.JSONField(
        default=list,
        blank=True,
        help_text=_(
            "Calls that only read are made again after a time-out or a lost connection, as "
            '[{"tool": "execute_sql", "attempts": 3, "backoff": 1}]. Empty: none are.'
        ),
    )
    integrations = models.JSONField(
        default=list,
        blank=True,
        help_text=_("Other services that it acts in, with the credentials of who runs it."),
    )
    options = models.JSONField(
        default=dict,
        blank=True,
        editable=False,
        help_text=_("Options of features, without those that have their default."),
    )
    toolkit = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text=_("Names the tools of the Python program that it belongs to."),
    )
    read_only = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_("It can change no file, nor can its commands and its subagents."),
    )
    general_subagent = models.BooleanField(
        default=True, help_text=_("It may delegate to a subagent with its own tools.")
    )
    background_subagents = models.BooleanField(
        default=False,
        help_text=_("It may also start subagents and go on meanwhile (spawn_subagent)."),
    )
    max_concurrent_subagents = models.PositiveSmallIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("Subagents of one run that work at once; more wait for their turn."),
    )
    subagent_depth = models.PositiveSmallIntegerField(
        default=1,
        validators=[MaxValueValidator(5)],
        help_text=_("0: it delegates nothing. 1: its subagents delegate nothing. And so on."),
    )
    max_turns = models.PositiveIntegerField(default=500, validators=[MinValueValidator(1)])
    max_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, help_text=_("All tokens of one run. Empty: no limit.")
    )
    max_cost = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text=_("US dollars a run.")
    )
    max_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("Wall time of one run. Empty: no limit.")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="owned_agents",
    )
    groups = models.ManyToManyField(Group, blank=True, related_name="agents")
    everyone = models.BooleanField(
        default=False, help_text=_("Every signed-in user may start runs with it.")
    )
    mcp_tool = models.BooleanField(
        _("MCP tool"),
        default=False,
        db_default=False,
        help_text=_(
            "Whoever may use it may also call it as a tool, from an MCP client (docs/mcp.md)."
        ),
    )
    is_active = models.BooleanField(default=True)
    version = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        permissions = [
            ("configure_sandbox", _("Can change an agent's sandbox and network")),
            ("share_agent", _("Can let others use an agent")),
            ("configure_approval", _("Can change what an agent asks, and who approves it")),
        ]

    def __str__(self) -> str:
        return self.name


class AgentVersion(models.Model):
    """An agent as it was when a run began. Rows are never changed."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField(help_text=_("The fields of `agents.spec.AgentSpec`."))
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["agent", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.number}"
