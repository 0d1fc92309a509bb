"""Takes the tables of notifications from the app agents, with the permissions that people have."""

import django.db.models.deletion
from django.db import migrations, models

import agents.ids


def take_permissions(apps, schema_editor):
    """Permissions refer to the content type, so they move with it."""
    types = apps.get_model("contenttypes", "ContentType").objects
    for model in ("notification", "notificationtarget"):
        earlier = types.filter(app_label="agents", model=model)
        if types.filter(app_label="vel_notifications", model=model).exists():
            earlier.delete()  # Made again by a step back, which has left those with the rights.
        else:
            earlier.update(app_label="vel_notifications")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("agents", "0015_notifications"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="NotificationTarget",
                    fields=[
                        ("id", models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                        ("kind", models.CharField(choices=[("webhook", "webhook"), ("email", "e-mail")], max_length=10)),
                        ("address", models.CharField(help_text="The URL, or the e-mail address.", max_length=500)),
                        ("secret", models.CharField(blank=True, help_text="Webhooks are signed with it. Empty: one is made.", max_length=200)),
                        ("is_active", models.BooleanField(default=True)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("agent", models.ForeignKey(blank=True, help_text="Only of this agent's requests. Empty: of all agents.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name="notification_targets", to="agents.agent")),
                    ],
                    options={"ordering": ["created_at"]},
                ),
                migrations.CreateModel(
                    name="Notification",
                    fields=[
                        ("id", models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                        ("type", models.CharField(help_text="What it tells, as approval.requested.", max_length=50)),
                        ("subject_id", models.CharField(help_text="The request or other row that it tells of.", max_length=64)),
                        ("status", models.CharField(choices=[("pending", "pending"), ("delivered", "delivered"), ("given_up", "given up"), ("obsolete", "not needed any more")], default="pending", max_length=10)),
                        ("attempts", models.PositiveSmallIntegerField(default=0)),
                        ("next_attempt_at", models.DateTimeField(blank=True, null=True)),
                        ("error", models.TextField(blank=True)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("delivered_at", models.DateTimeField(blank=True, null=True)),
                        ("run", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="agents.run")),
                        ("target", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="notifications", to="vel_notifications.notificationtarget")),
                    ],
                    options={
                        "ordering": ["created_at"],
                        "indexes": [models.Index(condition=models.Q(("status", "pending")), fields=["next_attempt_at"], name="notification_due")],
                        "constraints": [models.UniqueConstraint(fields=("target", "type", "subject_id"), name="notification_once")],
                    },
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    [
                        "ALTER TABLE agents_notificationtarget RENAME TO vel_notifications_notificationtarget",
                        "ALTER TABLE agents_notification RENAME TO vel_notifications_notification",
                    ],
                    # Without this app nothing deletes a row, so none must be left.
                    [
                        "DELETE FROM vel_notifications_notification",
                        "DELETE FROM vel_notifications_notificationtarget",
                        "ALTER TABLE vel_notifications_notification RENAME TO agents_notification",
                        "ALTER TABLE vel_notifications_notificationtarget RENAME TO agents_notificationtarget",
                    ],
                ),
            ],
        ),
        migrations.RunPython(take_permissions, migrations.RunPython.noop),
    ]
