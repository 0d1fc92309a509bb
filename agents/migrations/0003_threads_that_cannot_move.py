from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_definitions_of_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="thread",
            name="cannot_move",
            field=models.CharField(
                blank=True,
                db_default="",
                editable=False,
                help_text="Why its files could not leave a machine that is being drained.",
                max_length=300,
            ),
        ),
    ]
