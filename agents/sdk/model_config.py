"""The argument `model` of an agent, a subagent or a harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.sdk import arguments
from agents.sdk.errors import SetupError
from agents.spec import ModelOptions

with lazy_modules:
    # Import late, because programs import this module before they have an agent.
    from agents.providers import base, registry


@dataclass(frozen=True)
class ModelConfig:
    """A model and its options. None means the value of the settings. `api_key` is not stored.

    You can also pass a dictionary with the same keys, or a model's name.

    >>> agent = create_deep_agent(ModelConfig("scripted", "echo", max_tokens=2_000))
    """

    provider: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_tokens: int | None = None
    thinking: str | None = None
    effort: str | None = None

    def __post_init__(self) -> None:
        _check(self.to_dict(), "model")

    def to_dict(self) -> dict[str, Any]:
        """Return the values that are not None."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


Model = ModelConfig | Mapping[str, Any] | str | None

MODEL_KEYS = frozenset(one.name for one in fields(ModelConfig))
SUBAGENT_MODEL_KEYS = frozenset({"provider", "model"})


def checked_model(given: Model, name: str = "model") -> Mapping[str, Any] | str | None:
    """Return the argument as a name, a dictionary or None. Raises `SetupError`."""
    if isinstance(given, ModelConfig):
        return given.to_dict()
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        kind = type(given).__name__  # the value may contain a key
        raise SetupError(
            f'{name} must be {{"provider": …, "model": …}}, a ModelConfig, a name or None, got a '
            f"value of type {kind}."
        )
    _check(given, name)
    return given


def checked_model_of_subagent(given: Model, what: str) -> Mapping[str, Any] | str | None:
    """Return the argument `model` of a subagent, which has fewer options. Raises `SetupError`.

    `what` names the subagent in errors.
    """
    found = checked_model(given, f"{what}: model")
    if isinstance(found, Mapping) and (wrong := sorted(found.keys() - SUBAGENT_MODEL_KEYS)):
        raise SetupError(
            f"{what}: model has {', '.join(wrong)}. A subagent can set only provider and model. "
            "Set the other options of the agent."
        )
    return found


def _check(given: Mapping[str, Any], name: str) -> None:
    if unknown := sorted(set(map(str, given)) - MODEL_KEYS):
        raise SetupError(
            f"{name} has unknown keys {', '.join(unknown)}; known are "
            f"{', '.join(sorted(MODEL_KEYS))}."
        )
    if not isinstance(given.get("api_key") or "", str):
        raise SetupError(f"{name}: api_key must be a text.")
    if (most := given.get("max_tokens")) is not None:
        arguments.check_positive(f"{name}: max_tokens", most, whole=True, expected=", or None")
        arguments.check_number(f"{name}: max_tokens", most, 1)
    names = ("provider", "model", "thinking", "effort")
    stored = {key: given[key] for key in names if given.get(key) is not None}
    arguments.check_fields(ModelOptions, stored, name)
    if provider := given.get("provider"):
        _check_provider(provider, name)


def _check_provider(provider: str, name: str) -> None:
    try:
        registry.check_provider(provider)
    except base.ProviderError as error:
        if error.code == "unknown_provider":  # others depend on the installation
            raise SetupError(f"{name}: {error.message}.") from None
