"""The choice of an agent's skills, beyond the defaults of its scopes."""

from __future__ import annotations

from django.db import models

from skills_app.models.skill import Skill


class AgentSkill(models.Model):
    """A choice for one agent. Without one, library skills are off and others on."""

    agent = models.ForeignKey(
        "agents.Agent", on_delete=models.CASCADE, related_name="skill_choices"
    )
    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="choices")
    enabled = models.BooleanField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "skill"], name="agent_skill_once"),
        ]

    def __str__(self) -> str:
        return f"{self.skill_id} {'on' if self.enabled else 'off'} for {self.agent_id}"
