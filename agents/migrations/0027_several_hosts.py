import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0026_watching")]

    operations = [
        migrations.CreateModel(
            name="WorkerHost",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                (
                    "identity",
                    models.CharField(
                        help_text="Of its data directory: two machines may not have one name.",
                        max_length=64,
                    ),
                ),
                ("incarnation", models.PositiveIntegerField(default=1)),
                ("shares_workspaces", models.BooleanField(default=False)),
                (
                    "is_draining",
                    models.BooleanField(
                        default=False,
                        help_text="It begins nothing, and gives its threads to others.",
                    ),
                ),
                ("joined_at", models.FloatField()),
                ("seen_at", models.FloatField()),
                (
                    "dead_at",
                    models.FloatField(
                        blank=True, help_text="When it was declared dead.", null=True
                    ),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="UploadContent",
            fields=[
                (
                    "upload",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="content",
                        serialize=False,
                        to="agents.upload",
                    ),
                ),
                ("data", models.BinaryField()),
                (
                    "rendition",
                    models.BinaryField(
                        help_text="The Markdown of it, once a run has made that.", null=True
                    ),
                ),
            ],
        ),
        migrations.AlterField(
            model_name="thread",
            name="host",
            field=models.CharField(
                blank=True,
                help_text="The machine that holds the workspace. Empty: any may take it.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="thread",
            name="placement",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="Counts how often it has left a machine; its first thread's counts.",
            ),
        ),
        migrations.AddField(
            model_name="thread",
            name="lost_host",
            field=models.CharField(
                blank=True,
                db_default="",
                editable=False,
                help_text="The machine that died with its files; its next run tells the model.",
                max_length=255,
            ),
        ),
        migrations.AddField(
            model_name="workspacesnapshot",
            name="is_stored",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="The state that it leads to is in the storage that all hosts reach.",
            ),
        ),
    ]
