"""Maintenance of all encrypted values, in any table."""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.db import models, transaction

from agents.secret_text import SecretTextField, SecretUnreadable
from agents.services.audit import record


@dataclass(frozen=True)
class Rotation:
    """The result for stored secrets. `unreadable` names the rows that no key decrypts."""

    encrypted: int
    unreadable: tuple[str, ...]


def rotate_secrets() -> Rotation:
    """Encrypt every stored secret with the first key. Unreadable ones are left unchanged.

    An entry in the audit log records the numbers.
    """
    count, unreadable = 0, []
    for model, field in _places():
        for pk in model._default_manager.values_list("pk", flat=True).order_by("pk"):
            with transaction.atomic():
                row = model._default_manager.select_for_update().filter(pk=pk).first()
                secret = getattr(row, field, None)
                if not secret:
                    continue
                try:
                    anew = secret.sealed_anew()
                except SecretUnreadable:
                    unreadable.append(f"{model._meta.verbose_name} {row}")
                    continue
                # Not `save`: it would overwrite concurrent changes, and the row's time.
                model._default_manager.filter(pk=pk).update(**{field: anew})
                count += 1
    note = f"{count} encrypted with the first key; {len(unreadable)} that no key decrypts."
    with transaction.atomic():
        record("secrets.rotated", "secret", name="all stored secrets", note=note)
    return Rotation(count, tuple(unreadable))


def _places() -> list[tuple[type[models.Model], str]]:
    return [
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, SecretTextField)
    ]
