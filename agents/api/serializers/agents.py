"""Agents on the wire."""

from __future__ import annotations

from rest_framework import serializers

from agents.models import Agent
from agents.services.agents import default_model, default_provider


class AgentShape(serializers.Serializer[Agent]):
    """An agent, with the provider and model that a run started now would use."""

    id = serializers.CharField()
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    provider = serializers.SerializerMethodField()
    model = serializers.SerializerMethodField()

    def get_provider(self, agent: Agent) -> str:
        return agent.provider or default_provider()

    def get_model(self, agent: Agent) -> str:
        return agent.model or default_model(self.get_provider(agent))
