"""Another model for one run: one of those that the definition of the agent names.

The person who starts the run chooses it. The agent, and its other runs, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.kernel.features import entries
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec


def model_name(spec: AgentSpec) -> str:
    """Return the provider and the model of `spec`, as `openai:gpt-6.2-sol`."""
    return f"{spec.provider}:{spec.model}"


def model_choices(stored: Mapping[str, Any]) -> dict[str, AgentSpec]:
    """Return the definition with each model that a run can start with, by `model_name`.

    The first one is the agent's own model, the others are from the lists
    `model_choices.MODEL_CHOICES` of features. `stored` is the definition in a version; if it is
    invalid, there are no choices.
    """
    try:
        spec = AgentSpec.model_validate(stored)
    except ValidationError:
        return {}
    found = {model_name(spec): spec}
    for specs in entries("model_choices", "MODEL_CHOICES"):
        for each in specs(spec):
            found.setdefault(model_name(each), each)
    return found


def spec_with(stored: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the definition for a run with the model `name`; `stored` for the agent's own model.

    Raises `InvalidRequest` (model_not_allowed) for a model that the definition does not name.
    """
    choices = model_choices(stored)
    own = next(iter(choices), "")
    if name in ("", own):
        return stored
    if name not in choices:
        raise InvalidRequest(
            f"The agent cannot use the model {name[:300]!r}. Choose one of {', '.join(choices)}. "
            "People who can change the agent can add a fallback model.",
            code="model_not_allowed",
        )
    return choices[name].model_dump(mode="json")
