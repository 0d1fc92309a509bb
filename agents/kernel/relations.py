"""Relations of an agent: fields of its definition that name rows of a feature.

A feature lists instances of `AgentRelation` in its `relations.RELATIONS`. The rows refer to the
agent: a `ManyToManyField` of the feature's model to `agents.Agent`, whose `related_name` is the
name of the relation. The field is part of the agent's file, of its form in the admin, of the REST
API and of the audit log. What a run needs of the rows becomes part of each version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db.models import QuerySet

from agents.kernel.features import collect


class AgentRelation:
    """A field of agents. Its rows have a `name`, by which the definition of an agent knows them.

    Methods that refuse something raise `agents.services.errors.InvalidRequest`, whose message
    begins with the name of the field.
    """

    name: ClassVar[str]
    """Of the field, and of the accessor of the rows on an agent."""
    title: ClassVar[str]
    """The heading of the field in the admin."""
    help_text: ClassVar[str] = ""
    permission: ClassVar[str]
    """Who lacks it can only look at the field."""

    def choices(self, agent: Any) -> QuerySet[Any]:
        """Return the rows that `agent`, which need not be stored, can have."""
        raise NotImplementedError

    def copied(self, agent: Any) -> list[Any]:
        """Return the rows of `agent` that a copy of it has, too."""
        return list(self.rows(agent))

    def check(self, agent: Any, rows: Sequence[Any]) -> None:
        """Refuse rows that `agent` cannot have."""

    def fields(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return what a version of an agent with these rows has, without empty values."""
        raise NotImplementedError

    def offered(self, person: Any) -> list[str]:
        """Return the names that `person` can give to new agents."""
        raise NotImplementedError

    def demo_rows(self) -> list[Any]:
        """Return the rows that the agent of the demo has, and make those that are missing."""
        return []

    def seal(self, name: str, value: str) -> Any:
        """Check a value that a program or a command gives for its own agent, and encrypt it."""
        raise NotImplementedError

    def own_row(self, agent: Any, name: str, sealed: Any, *, writable: bool = False) -> Any:
        """Store the row `name` of somebody's own `agent`, which is stored, from `seal`."""
        raise NotImplementedError

    def rows(self, agent: Any) -> Any:
        """Return the rows that `agent` has; of one that is not stored there are none."""
        return () if agent._state.adding else getattr(agent, self.name).all()

    def names(self, agent: Any) -> list[str]:
        """Return the names of the rows of `agent`, which is stored, in their order."""
        return sorted(getattr(agent, self.name).values_list("name", flat=True))

    def named(self, agent: Any) -> Mapping[str, Any]:
        """Return the rows that a file of `agent` can name. Those that it has come first."""
        rows = {row.name: row for row in self.choices(agent)}
        return {**rows, **{row.name: row for row in self.rows(agent)}}


@lru_cache(maxsize=1)
def relations() -> tuple[AgentRelation, ...]:
    """Return the relations of all installed features, in their order.

    Raises `ImproperlyConfigured` for a name that two have.
    """
    found: dict[str, AgentRelation] = {}
    for config, relation in collect("relations", "RELATIONS"):
        if relation.name in found:
            raise ImproperlyConfigured(
                f"The relation {relation.name!r} of agents is declared twice, also by "
                f"{config.name}. Rename one."
            )
        found[relation.name] = relation
    return tuple(found.values())


def relation_named(name: str) -> AgentRelation | None:
    """Return the relation `name` if a feature that has it is installed."""
    return next((relation for relation in relations() if relation.name == name), None)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        relations.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.relations")
