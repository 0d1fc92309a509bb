from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0023_triggers")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="fallbacks",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text='Models that go on, one after the other, when the one before is down, as [{"provider": "anthropic", "model": "claude-haiku-4-5"}]; at most 3 (docs/fallbacks.md).',
            ),
        ),
    ]
