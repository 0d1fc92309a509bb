"""Notifications belong to the app vel_notifications, whose first migration takes their tables.

Before, their references to requests and scheduled runs become ids, so that neither app needs the
other.
"""

import django.db.models.deletion
from django.db import migrations, models

TELL = """
UPDATE agents_notification SET type = 'approval.requested', subject_id = request_id,
  run_id = (SELECT run_id FROM agents_approvalrequest WHERE id = agents_notification.request_id)
  WHERE request_id IS NOT NULL;
UPDATE agents_notification SET type = 'schedule.not_started',
  subject_id = CAST(firing_id AS varchar(64)) WHERE firing_id IS NOT NULL
"""
# A row that tells of something that was deleted since then goes, as it would have gone with it.
TELL_BACK = """
UPDATE agents_notification SET request_id = subject_id WHERE type = 'approval.requested'
  AND EXISTS (SELECT 1 FROM agents_approvalrequest WHERE id = agents_notification.subject_id);
UPDATE agents_notification SET firing_id = CAST(subject_id AS bigint)
  WHERE type = 'schedule.not_started' AND EXISTS (SELECT 1 FROM agents_schedulefiring
  WHERE CAST(id AS varchar(64)) = agents_notification.subject_id);
DELETE FROM agents_notification WHERE request_id IS NULL AND firing_id IS NULL
"""


def statements(text):
    def run(apps, schema_editor):
        with schema_editor.connection.cursor() as cursor:
            for statement in text.split(";"):
                cursor.execute(statement)
        if schema_editor.connection.vendor == "postgresql":
            # Checked now: a table cannot be altered while a check waits for the commit.
            schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            schema_editor.execute("SET CONSTRAINTS ALL DEFERRED")

    return run


class Migration(migrations.Migration):
    dependencies = [("agents", "0014_databases")]

    operations = [
        migrations.RemoveConstraint("notification", "notification_once"),
        migrations.RemoveConstraint("notification", "notification_of_one"),
        migrations.AddField(
            "notification",
            "type",
            models.CharField(default="", help_text="What it tells, as approval.requested.", max_length=50),
            preserve_default=False,
        ),
        migrations.AddField(
            "notification",
            "subject_id",
            models.CharField(default="", help_text="The request or other row that it tells of.", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            "notification",
            "run",
            models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="agents.run"),
        ),
        migrations.RunPython(statements(TELL), statements(TELL_BACK)),
        migrations.RemoveField("notification", "request"),
        migrations.RemoveField("notification", "firing"),
        migrations.AddConstraint(
            "notification",
            models.UniqueConstraint(fields=("target", "type", "subject_id"), name="notification_once"),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("Notification"),
                migrations.DeleteModel("NotificationTarget"),
            ],
        ),
    ]
