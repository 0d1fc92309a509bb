from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0004_own_databases_can_be_written'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='read_only',
            field=models.BooleanField(db_default=False, default=False, help_text='It can change no file, nor can its commands and its subagents.'),
        ),
    ]
