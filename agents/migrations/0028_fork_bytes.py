from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0027_several_hosts")]

    operations = [
        migrations.AddField(
            model_name="thread",
            name="copied_bytes",
            field=models.PositiveBigIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="Of a fork that has its files still: bytes of files that it began with.",
            ),
        ),
    ]
