"""Declarations of the objects that programs manage as people do in the admin.

A feature declares one `Managed` for each of its admin classes in its `api.py`, and adds
`endpoints(…)` to its `urlpatterns`. The fields of bodies and responses derive from the form of the
admin class, and each request uses its permissions, its form and its `save_model`: a rule of the
admin is a rule of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Model, Q
from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.managed.fields import Field, body_field, shown_field
from agents.doors.rest.operations import Shape
from agents.doors.rest.serializers import AgentField, PageQuery, StrictSerializer, Text
from agents.models import TokenScope
from agents.selectors.visible import of_agent

AGENT_SLUG = "agent__slug"
"""The end of the lookups that filter by an agent."""


@dataclass(frozen=True, kw_only=True)
class Own:
    """A field of bodies for a field of the form that has another type or name.

    `find` returns the value for the form, and raises Django's `ValidationError`. Without `shown`,
    it is a secret and never part of a response.
    """

    body: Callable[..., Field]
    form: str = ""
    shown: Field | None = None
    find: Callable[[Any], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Action:
    """A further operation on one object: `POST /rows/ID/name`.

    `may` is the method of the admin class that checks the permission, without `has_` and
    `_permission`. `call` gets the row and the user, and returns fields of the response in addition
    to those of the object. `admin` is the admin's action, if it has another name.
    """

    name: str
    summary: str
    call: Callable[[Any, AbstractBaseUser], Mapping[str, Any] | None]
    may: str = "change"
    answer: Shape | None = None
    admin: str = ""
    who: str = ""
    """Who may use it, for the documentation, if this is not who may change the object."""


@dataclass(frozen=True, kw_only=True)
class Managed:
    """The objects of one model.

    Bodies name other rows by their slug or name. `names` maps fields of the form to their names in
    bodies and responses, `own` has fields that do not derive from the form, `shown` fields of
    responses only, and `once` fields of the response to a change, for example a new secret.
    `filters` maps parameters of the list to lookups. A lookup of the slug of an agent also accepts
    its id.
    """

    model: type[Model]
    admin: type[admin.ModelAdmin] | None = None
    """Used if the project has registered no class for the model. None: then there are no objects.
    """
    name: str
    """As `budget`: in names of operations and components."""
    plural: str
    rows: str
    """The path of the list, as `budgets`."""
    what: str = ""
    """A sentence about the objects, for the schema."""
    form: type[forms.ModelForm] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, Own] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    shown: Mapping[str, Field] = field(default_factory=dict)
    once: Mapping[str, Field] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    prefetch: Callable[[], tuple[Any, ...]] = tuple
    """Return the relations that the fields of each row read, for `prefetch_related`."""
    creates: bool = True
    changes: bool = True
    deletes: bool = True
    actions: tuple[Action, ...] = ()
    scope: TokenScope = TokenScope.MANAGE
    newest_first: bool = True
    save: Callable[[Any, HttpRequest, Any, bool], Mapping[str, Any]] | None = None
    """Saves a valid form, and returns the fields in `once`: the admin class, the request, the form,
    whether the object exists. None: `save_model` and `save_related`."""
    create: Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]] | None = None
    """Creates a row from a body, with an `AdminRows`, if the admin has a separate form for it."""
    change: Callable[[Any, Any, dict[str, Any]], None] | None = None
    """Called in the transaction of a change, before it, with an `AdminRows`, the row and the body.
    It can take fields of the body."""
    who: Mapping[str, str] = field(default_factory=dict)
    """Who may list, read, create, change or delete, for the documentation, if this is not what the
    permissions of the model say."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """The operation that creates, changes or deletes, if it is a view of the feature."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Further operations of the feature, each with who may use it."""
    answer: Shape | None = None
    """The response for one object, if it is not `shape`: with `show`."""
    show: Callable[[Any, AbstractBaseUser], Mapping[str, Any]] | None = None

    @property
    def accepts_key(self) -> bool:
        """Whether a creation accepts an `Idempotency-Key`, with which no secret may be stored."""
        return not self.once and all(own.shown is not None for own in self.own.values())

    @property
    def title(self) -> str:
        return str(self.model._meta.verbose_name)

    @property
    def camel(self) -> str:
        return "".join(part.title() for part in self.name.split("_"))

    def wire(self, form_field: str) -> str:
        """Return the name of a form's field in bodies."""
        for name, own in self.own.items():
            if (own.form or name) == form_field:
                return name
        return self.names.get(form_field, form_field)

    @cached_property
    def form_fields(self) -> dict[str, forms.Field]:
        """The fields of the form that bodies have, by the names of the form."""
        form = self.form or (self.admin.form if self.admin is not None else forms.ModelForm)
        skipped = {*self.left_out, *(own.form or name for name, own in self.own.items())}
        return {name: each for name, each in form.base_fields.items() if name not in skipped}

    @cached_property
    def shape(self) -> type[serializers.Serializer[Any]]:
        """The fields of one object. Secrets are not part of it."""
        fields = {"id": serializers.CharField(source="pk"), **self._defined(), **self.shown}
        return _serializer(serializers.Serializer, f"{self.camel}Shape", self.what, fields)

    @cached_property
    def definition(self) -> type[serializers.Serializer[Any]]:
        """The fields that people set, without what the server computes. The entity tag has them."""
        return _serializer(serializers.Serializer, f"{self.camel}Definition", "", self._defined())

    def _defined(self) -> dict[str, Field]:
        columns = {each.name for each in self.model._meta.get_fields()}
        return {
            **{
                self.wire(name): shown_field(each, name, self.wire(name))
                for name, each in self.form_fields.items()
                if name in columns
            },
            **{name: own.shown for name, own in self.own.items() if own.shown is not None},
        }

    @cached_property
    def shown_shape(self) -> Shape:
        """The response for one object."""
        return self.answer or self.shape

    @cached_property
    def saved_shape(self) -> Shape:
        """The response to a creation or a change."""
        if not self.once:
            return self.shown_shape
        words = "The additional fields are shown only in this response, or are null."
        return _serializer(self.shown_shape, f"Saved{self.camel}Shape", words, dict(self.once))

    @cached_property
    def new_body(self) -> type[StrictSerializer]:
        fields = {
            self.wire(name): body_field(each, required=_is_required(each))
            for name, each in self.form_fields.items()
        }
        fields |= {name: own.body(required=False) for name, own in self.own.items()}
        return _serializer(StrictSerializer, f"New{self.camel}Body", self.what, fields)

    @cached_property
    def change_body(self) -> type[StrictSerializer]:
        fields = {
            self.wire(name): body_field(each, required=False)
            for name, each in self.form_fields.items()
        }
        fields |= {name: own.body(required=False) for name, own in self.own.items()}
        words = "Absent fields do not change."
        return _serializer(StrictSerializer, f"{self.camel}Body", words, fields)

    @cached_property
    def query(self) -> type[PageQuery]:
        fields: dict[str, Field] = {
            name: AgentField(required=False)
            if lookup.endswith(AGENT_SLUG)
            else Text(max_length=200, required=False)
            for name, lookup in self.filters.items()
        }
        if self.admin is not None and self.admin.search_fields:
            fields["q"] = Text(max_length=200, required=False, help_text="Words to search for.")
        return _serializer(PageQuery, f"{self.camel}ListQuery", "A page of a list.", fields)

    def condition(self, query: Mapping[str, Any]) -> Q:
        """Return the filter of a query. Raises `ValidationError`."""
        found = Q()
        for name, lookup in self.filters.items():
            if name not in query:
                continue
            value: Any = query[name]
            if lookup.endswith(AGENT_SLUG):
                found &= of_agent(lookup.removesuffix("__slug"), value)
                continue
            if lookup.startswith("is_") or lookup == "enabled":
                if value not in ("true", "false"):
                    raise ValidationError({name: ["Must be true or false."]})
                value = value == "true"
            found &= Q(**{lookup: value})
        return found


def _serializer(base: type[Any], name: str, words: str, fields: dict[str, Field]) -> type[Any]:
    kind = type(name, (base,), {"__doc__": words or "An object.", **fields})
    # In this order, and not in that of the creation of the fields.
    inherited = getattr(base, "_declared_fields", {})
    kind._declared_fields = {**inherited, **fields}  # type: ignore[attr-defined]
    return kind


def _is_required(each: forms.Field) -> bool:
    has_value = each.initial not in (None, "")
    return each.required and not has_value and not isinstance(each, forms.BooleanField)
