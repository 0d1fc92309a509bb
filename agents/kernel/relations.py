"""Relations of an agent: fields of its definition that are rows of a feature.

A feature lists instances of `AgentRelation` in its `relations.RELATIONS`. The rows refer to the
agent: a `ManyToManyField` of the feature's model to `agents.Agent` with the name of the relation as
`related_name`. The field is part of the agent's file, of its form in the admin, of the REST API and
of the audit log. The data that a run needs of the rows becomes part of each version.

Rows of an `OwnRows` belong to one agent: a `ForeignKey` with the same `related_name`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db.models import QuerySet
from pydantic import BaseModel

from agents.kernel.features import collect


class AgentRelation:
    """A field of agents. Its rows have a `name`, which the definition of an agent uses.

    Methods that refuse a value raise `agents.services.errors.InvalidRequest` with a message that
    starts with the field's name.
    """

    name: ClassVar[str]
    """The name of the field, and of the accessor of the rows on an agent."""
    title: ClassVar[str]
    """The heading of the field in the admin."""
    help_text: ClassVar[str] = ""
    permission: ClassVar[str] = ""
    """The permission to change the field. Others can only see it. Empty: who can change the agent.
    """

    def choices(self, agent: Any) -> QuerySet[Any]:
        """Return the rows that `agent`, which need not be stored, can have."""
        raise NotImplementedError

    def copied(self, agent: Any) -> list[Any]:
        """Return the rows of `agent` that a copy of it gets, too."""
        return list(self.rows(agent))

    def check(self, agent: Any, rows: Sequence[Any]) -> None:
        """Refuse rows that `agent` cannot have."""

    def fields(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the values of these rows for a version of an agent, without empty ones."""
        raise NotImplementedError

    def offered(self, person: Any) -> list[str]:
        """Return the names that `person` can give to new agents."""
        raise NotImplementedError

    def demo_rows(self) -> list[Any]:
        """Return the rows of the demo's agent, and create missing ones."""
        return []

    def seal(self, name: str, value: str) -> Any:
        """Check a value from a program or a command for its own agent, and encrypt it."""
        raise NotImplementedError

    def own_row(
        self,
        agent: Any,
        name: str,
        sealed: Any,
        *,
        writable: bool = False,
        limits: Mapping[str, Any] | None = None,
    ) -> Any:
        """Store the row `name` of a program's own `agent`, which is stored, from `seal`."""
        raise NotImplementedError

    def rows(self, agent: Any) -> Any:
        """Return the rows of `agent`, none if it is not stored."""
        return () if agent._state.adding else getattr(agent, self.name).all()

    def set(self, agent: Any, rows: Sequence[Any]) -> None:
        """Let `agent` have these rows and no others. They are checked."""
        getattr(agent, self.name).set(rows)

    def state(self, rows: Sequence[Any]) -> Any:
        """Return the rows for the audit log, as JSON."""
        return sorted(row.name for row in rows)

    def names(self, agent: Any) -> list[str]:
        """Return the names of the rows of `agent`, which is stored, in their order."""
        return sorted(getattr(agent, self.name).values_list("name", flat=True))

    def named(self, agent: Any) -> Mapping[str, Any]:
        """Return the rows that a file of `agent` can name. Its present ones take precedence."""
        rows = {row.name: row for row in self.choices(agent)}
        return {**rows, **{row.name: row for row in self.rows(agent)}}


class OwnRows(AgentRelation):
    """Rows that belong to one agent, and that its file contains.

    The form in the admin edits them with an inline: see `agents.doors.admin.own_rows`.
    """

    item: ClassVar[type[BaseModel]]
    """A row in the file. It has the `name` of the row."""

    def choices(self, agent: Any) -> Any:
        return self.rows(agent)

    def offered(self, person: Any) -> list[str]:
        return []

    def in_file(self, row: Any) -> dict[str, Any]:
        """Return a row for the file, without defaults."""
        raise NotImplementedError

    def from_file(self, values: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the rows of a file's checked data, not stored."""
        raise NotImplementedError


@lru_cache(maxsize=1)
def relations() -> tuple[AgentRelation, ...]:
    """Return the relations of all installed features, in their order.

    Raises `ImproperlyConfigured` for a name that is used twice.
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
