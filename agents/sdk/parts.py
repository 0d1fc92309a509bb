"""Vel's own components among an agent's middleware: they configure the agent's own features."""

from __future__ import annotations

from dataclasses import replace

from agents.sdk.config import DeepAgentConfig


def settled(config: DeepAgentConfig) -> DeepAgentConfig:
    """Return the config after changes by such components; the others stay middleware."""
    own = []
    for item in config.middleware:
        configure = getattr(item, "configure", None)
        if configure is None:
            own.append(item)
        else:
            config = configure(config)
    return replace(config, middleware=own) if own != config.middleware else config
