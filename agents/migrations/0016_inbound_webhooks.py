"""Inbound webhooks belong to the app vel_inbound_webhooks, whose first migration takes their tables.

Runs and budgets refer to triggers by their ids, and do not know their kinds.
"""

from django.db import migrations, models


# In SQL: the models of a migration cannot delete rows through these relations.
_BUDGETS = 'SELECT id FROM agents_budget WHERE "trigger" IS NOT NULL'
_WINDOWS = f"SELECT id FROM agents_allowance WHERE budget_id IN ({_BUDGETS})"
WITHOUT_BUDGETS = (
    f"UPDATE agents_runclock SET waits_for_id = NULL WHERE waits_for_id IN ({_WINDOWS})",
    f"UPDATE agents_approvalrequest SET allowance_id = NULL WHERE allowance_id IN ({_WINDOWS})",
    f"DELETE FROM agents_allowance WHERE budget_id IN ({_BUDGETS})",
    'DELETE FROM agents_budget WHERE "trigger" IS NOT NULL',
)


def fill(apps, schema_editor):
    run, budget = apps.get_model("agents", "Run"), apps.get_model("agents", "Budget")
    for name in ("schedule", "hook"):
        run.objects.filter(**{f"{name}__isnull": False}).update(trigger=models.F(f"{name}_id"))
    for row in budget.objects.filter(hook__isnull=False).select_related("hook"):
        row.trigger, row.trigger_name = row.hook_id, f"the webhook {row.hook.name}"
        row.save(update_fields=["trigger", "trigger_name"])


def leave(apps, schema_editor):
    """Webhooks are deleted before their tables come back, and their budgets limit nothing else."""
    for statement in WITHOUT_BUDGETS:
        schema_editor.execute(statement, ())
    if schema_editor.connection.vendor == "postgresql":
        # Checked now: a table cannot be altered while a check waits for the commit.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        schema_editor.execute("SET CONSTRAINTS ALL DEFERRED")


class Migration(migrations.Migration):
    dependencies = [("agents", "0015_notifications")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="trigger",
            field=models.CharField(blank=True, help_text="The id of the trigger that started it, or its first ancestor.", max_length=26, null=True),
        ),
        migrations.AddField(
            model_name="budget",
            name="trigger",
            field=models.CharField(blank=True, editable=False, help_text="The id of a `Run.trigger`. Only its runs count.", max_length=26, null=True),
        ),
        migrations.AddField(
            model_name="budget",
            name="trigger_name",
            field=models.CharField(blank=True, db_default="", default="", editable=False, help_text="What `trigger` is, in words.", max_length=200),
        ),
        migrations.RemoveConstraint(model_name="budget", name="budget_of_somebody"),
        migrations.RunPython(fill, leave),
        migrations.RemoveIndex(model_name="run", name="run_schedule"),
        migrations.RemoveIndex(model_name="run", name="run_hook"),
        migrations.RemoveField(model_name="budget", name="hook"),
        migrations.RemoveField(model_name="run", name="hook"),
        migrations.RemoveField(model_name="run", name="schedule"),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(condition=models.Q(("agent__isnull", False), ("user__isnull", False), ("trigger__isnull", False), _connector="OR"), name="budget_of_somebody", violation_error_message="Say whose budget it is: an agent's, a user's, a user's with one agent, or a webhook's."),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("trigger__isnull", False)), fields=["trigger"], name="run_trigger"),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="InboundWebhookRefusal"),
                migrations.DeleteModel(name="InboundWebhookDelivery"),
                migrations.DeleteModel(name="InboundWebhook"),
            ],
            database_operations=[],
        ),
    ]
