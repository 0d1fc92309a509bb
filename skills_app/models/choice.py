"""Which skills an agent has, beyond what its scopes give it by themselves."""

from __future__ import annotations

from django.db import models

from skills_app.models.skill import Skill


class AgentSkill(models.Model):
    """Somebody's choice for one agent. Without one, library skills are off and others on."""

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
