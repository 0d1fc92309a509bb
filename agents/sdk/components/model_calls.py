"""Long conversations, prompt caches and retries as components.

They configure the model calls of an agent. They have no tools, and have no effect without an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware, with_options
from agents.sdk.config import DeepAgentConfig, checked
from agents.sdk.errors import SetupError


class ContextManagementMiddleware(BuiltInMiddleware):
    """Write long results to files and shorten long conversations (docs/guides/context.md).

    `evict_bytes` is the size in bytes from which a result is written to a file. `compact_at` is the
    part of the room for prompts, from 0.1 to 1, from which a conversation is shortened. None means
    the value of the settings. With `enabled` False the agent does neither.

    >>> agent = create_deep_agent(middleware=[ContextManagementMiddleware(compact_at=0.5)])
    >>> agent.config.options["compact_at"]
    0.5
    """

    name = "context_management"
    leave_out = "ContextManagementMiddleware(enabled=False)"

    def __init__(
        self,
        enabled: bool = True,
        evict_bytes: int | None = None,
        compact_at: float | None = None,
    ) -> None:
        self.enabled = enabled
        arguments.check_flags(self, ("enabled",))
        if evict_bytes is not None:
            arguments.check_number("evict_bytes", evict_bytes, 1_000, 20_000_000)
        if compact_at is not None:
            arguments.check_positive("compact_at", compact_at)
            if not 0.1 <= compact_at <= 1:
                raise arguments.wrong("compact_at", "a number from 0.1 to 1", compact_at)
        if not enabled and (evict_bytes, compact_at) != (None, None):
            raise SetupError(
                "ContextManagementMiddleware: evict_bytes and compact_at have no effect with "
                "enabled=False: leave one out."
            )
        self.evict_bytes = evict_bytes
        self.compact_at = compact_at

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        values = {
            "context_management": self.enabled,
            "evict_bytes": self.evict_bytes,
            "compact_at": self.compact_at,
        }
        return with_options(config, values, "ContextManagementMiddleware")


class CachingMiddleware(BuiltInMiddleware):
    """Use the provider's prompt cache, or with `enabled` False do not request it.

    >>> agent = create_deep_agent(middleware=[CachingMiddleware(enabled=False)])
    >>> agent.config.options["prompt_caching"]
    False
    """

    name = "caching"
    leave_out = "CachingMiddleware(enabled=False)"

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        arguments.check_flags(self, ("enabled",))

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        return with_options(config, {"prompt_caching": self.enabled}, "CachingMiddleware")


class RetryMiddleware(BuiltInMiddleware):
    """Repeat model calls after temporary errors, and tool calls according to `tool_retries`.

    `model_attempts` is a number from 1 (no retries) to 20 that includes the first call. None means
    the value of the settings. `tool_retries` is the argument of `create_deep_agent`.

    >>> retries = RetryMiddleware(3, [{"tool": "grep", "attempts": 2}])
    >>> agent = create_deep_agent(middleware=[retries])
    >>> agent.config.options["model_attempts"]
    3
    """

    name = "retry"
    leave_out = "RetryMiddleware(model_attempts=1)"

    def __init__(
        self,
        model_attempts: int | None = None,
        tool_retries: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if model_attempts is not None:
            arguments.check_number("model_attempts", model_attempts, 1, 20)
        self.model_attempts = model_attempts
        self.tool_retries = checked("tool_retries", tool_retries)

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        rules = self.tool_retries
        if rules and config.tool_retries not in ([], rules):
            raise SetupError("tool_retries contradicts that of the RetryMiddleware: leave one out.")
        config = replace(config, tool_retries=list(rules or config.tool_retries))
        return with_options(config, {"model_attempts": self.model_attempts}, "RetryMiddleware")
