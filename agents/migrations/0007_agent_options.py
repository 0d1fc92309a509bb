from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_credentials_have_their_own_app")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="options",
            field=models.JSONField(
                blank=True,
                default=dict,
                editable=False,
                help_text="Options of features, without those that have their default.",
            ),
        ),
    ]
