from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0002_links'),
    ]

    operations = [
        migrations.AddField(
            model_name='thread',
            name='workspace_rules',
            field=models.JSONField(blank=True, default=dict, help_text='Which files of that directory the agent may change in addition (allow_write), or may not (protect), as lists of patterns.'),
        ),
    ]
