import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0025_mcp_servers")]

    operations = [
        migrations.CreateModel(
            name="ServerProcess",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(choices=[("worker", "worker"), ("web", "web")], max_length=10),
                ),
                ("host", models.CharField(blank=True, max_length=255)),
                ("pid", models.PositiveIntegerField(default=0)),
                ("version", models.CharField(blank=True, max_length=50)),
                ("started_at", models.FloatField(default=0)),
                ("seen_at", models.FloatField(default=0)),
                (
                    "driven",
                    models.PositiveIntegerField(default=0, help_text="Runs that it drives now."),
                ),
                ("capacity", models.PositiveIntegerField(default=0)),
                (
                    "streams",
                    models.PositiveIntegerField(default=0, help_text="Event streams open in it."),
                ),
                (
                    "limits",
                    models.TextField(
                        blank=True, help_text="What keeps the limits of its sandboxes, as JSON."
                    ),
                ),
                ("counters", models.TextField(blank=True)),
            ],
            options={"ordering": ["kind", "host", "pid"]},
        ),
        migrations.CreateModel(
            name="RemoteTrace",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="agents.run",
                    ),
                ),
                ("traceparent", models.CharField(max_length=55)),
            ],
        ),
    ]
