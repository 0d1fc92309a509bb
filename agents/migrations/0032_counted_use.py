from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Fills nothing: workers count what has ended before, a few runs at a time."""

    dependencies = [
        ("agents", "0031_google_credential"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="uncounted_from",
            field=models.PositiveIntegerField(
                db_default=1,
                default=1,
                editable=False,
                help_text="Replies from this turn on are not in the totals of use. Null: all are.",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("uncounted_from__isnull", False)),
                fields=["owner", "uncounted_from"],
                name="run_uncounted",
            ),
        ),
        migrations.AddIndex(
            model_name="usagetotal",
            index=models.Index(fields=["owner", "start"], name="usage_total_of_owner"),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["owner", "agent", "id"], name="thread_agent_of_owner"),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["owner", "title", "id"], name="thread_title_of_owner"),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["root", "id"], name="thread_of_root"),
        ),
        migrations.AlterField(
            model_name="thread",
            name="root",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The thread whose shared files a subagent's has. Null: a person's own.",
                null=True,
                on_delete=models.deletion.CASCADE,
                related_name="family",
                to="agents.thread",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["owner", "ended_at"], name="run_ended_of_owner"),
        ),
    ]
