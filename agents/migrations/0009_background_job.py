from django.db import migrations

from agents.kernel.rename_model import RenameModelAndPermissions


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0008_message_position_and_author'),
        ('auth', '0001_initial'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        RenameModelAndPermissions('Chore', 'BackgroundJob'),
    ]
