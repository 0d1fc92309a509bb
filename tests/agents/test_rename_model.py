"""A model that a migration renames: its rows stay, and so do the rights of users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

BEFORE = "0008"

pytestmark = pytest.mark.both_databases


@pytest.fixture
def before(transactional_db: None) -> Iterator[None]:
    call_command("migrate", "agents", BEFORE, verbosity=0)
    yield
    call_command("migrate", verbosity=0)  # the features have gone back, too


@pytest.mark.parametrize(
    ("old", "new"),
    [("chore", "backgroundjob"), ("hook", "inboundwebhook"), ("workerhost", "machine")],
)
def test_rights_to_a_renamed_model_stay(before: None, old: str, new: str) -> None:
    group, ann = Group.objects.create(name="operators"), User.objects.create(username="ann")
    kept = {}
    for action in ("add", "change", "delete", "view"):
        right = Permission.objects.get(codename=f"{action}_{old}", content_type__app_label="agents")
        group.permissions.add(right)
        ann.user_permissions.add(right)
        kept[right.pk] = f"{action}_{new}"

    call_command("migrate", "agents", verbosity=0)

    assert dict(group.permissions.values_list("pk", "codename")) == kept
    assert dict(ann.user_permissions.values_list("pk", "codename")) == kept
    assert ann.has_perm(f"agents.view_{new}")
    assert not ContentType.objects.filter(app_label="agents", model=old).exists()
    assert Permission.objects.filter(content_type__model=new).count() == len(kept)
    ContentType.objects.clear_cache()


@pytest.mark.parametrize(("old", "new"), [("Chore", "BackgroundJob")])
def test_rows_of_a_renamed_model_stay(before: None, old: str, new: str) -> None:
    earlier = MigrationExecutor(connection).loader.project_state(
        ("agents", f"{BEFORE}_message_position_and_author")
    )
    earlier.apps.get_model("agents", old).objects.create(name="prune", due_at=7.0)

    call_command("migrate", "agents", verbosity=0)

    later = MigrationExecutor(connection).loader.project_state()
    assert later.apps.get_model("agents", new).objects.get().due_at == 7.0
