"""Relations of an agent: fields of its definition that are rows of a feature.

A feature lists instances of `AgentRelation` in its `relations.RELATIONS`. The feature's model has a
`ManyToManyField` to `agents.Agent` with the name of the relation as `related_name`. The field is
part of the agent's file, of its form in the admin, of the REST API and of the audit log. Each
version contains the data of the rows that a run needs.

Rows of an `OwnRows` belong to one agent: their model has a `ForeignKey` with that `related_name`.
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
    """A field of agents. Each of its rows has a `name`, which the definition of an agent uses.

    Methods that refuse a value raise `agents.services.errors.InvalidRequest` with a message that
    starts with the field's name.
    """

    name: ClassVar[str]
    """The name of the field, and of the attribute of an agent with the rows."""
    title: ClassVar[str]
    """The heading of the field in the admin."""
    help_text: ClassVar[str] = ""
    permission: ClassVar[str] = ""
    """The permission that is needed to change the field. Others can only see it.

    Empty: everybody who can change the agent can change the field.
    """

    def choices(self, agent: Any) -> QuerySet[Any]:
        """Return the rows that `agent` can have. The agent need not be stored."""
        raise NotImplementedError

    def copied(self, agent: Any) -> list[Any]:
        """Return the rows of `agent` that a copy of the agent gets too."""
        return list(self.rows(agent))

    def check(self, agent: Any, rows: Sequence[Any]) -> None:
        """Raise `InvalidRequest` if `agent` cannot have `rows`."""

    def fields(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the data of `rows` that a version of an agent stores, without empty values."""
        raise NotImplementedError

    def offered(self, person: Any) -> list[str]:
        """Return the names of rows that `person` can give to new agents."""
        raise NotImplementedError

    def demo_rows(self) -> list[Any]:
        """Return the rows of the demo's agent. Missing rows are created."""
        return []

    def seal(self, name: str, value: str) -> Any:
        """Check a value from a program or a command for its own agent, and return it encrypted."""
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
        """Store and return the row `name` of a program's own agent, which must be stored.

        Args:
            agent: The agent.
            name: The name of the row.
            sealed: The result of `seal`.
            writable: Whether the agent may also change data, not only read them.
            limits: Values of the relation's limits by name. Others have their defaults.
        """
        raise NotImplementedError

    def rows(self, agent: Any) -> Any:
        """Return the rows of `agent`. An agent that is not stored has none."""
        return () if agent._state.adding else getattr(agent, self.name).all()

    def set(self, agent: Any, rows: Sequence[Any]) -> None:
        """Replace the rows of `agent` with `rows`, which must be checked."""
        getattr(agent, self.name).set(rows)

    def state(self, rows: Sequence[Any]) -> Any:
        """Return the rows as JSON data for the audit log."""
        return sorted(row.name for row in rows)

    def names(self, agent: Any) -> list[str]:
        """Return the sorted names of the rows of `agent`, which must be stored."""
        return sorted(getattr(agent, self.name).values_list("name", flat=True))

    def named(self, agent: Any) -> Mapping[str, Any]:
        """Return the rows that a file of `agent` can name, by name.

        Its present rows take precedence.
        """
        rows = {row.name: row for row in self.choices(agent)}
        return {**rows, **{row.name: row for row in self.rows(agent)}}


class OwnRows(AgentRelation):
    """A relation whose rows belong to one agent. The agent's file contains them.

    The form in the admin edits them with an inline: see `agents.doors.admin.own_rows`.
    """

    item: ClassVar[type[BaseModel]]
    """The class of a row in the file. Its field `name` is the name of the row."""

    def choices(self, agent: Any) -> Any:
        return self.rows(agent)

    def offered(self, person: Any) -> list[str]:
        return []

    def in_file(self, row: Any) -> dict[str, Any]:
        """Return the data of a row for the file, without defaults."""
        raise NotImplementedError

    def from_file(self, values: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return rows for a file's checked data. The rows are not stored."""
        raise NotImplementedError


@lru_cache(maxsize=1)
def relations() -> tuple[AgentRelation, ...]:
    """Return the relations of all installed features, in order.

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
    """Return the relation `name`, None if no installed feature has it."""
    return next((relation for relation in relations() if relation.name == name), None)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        relations.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.relations")
