from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0003_thread_workspace_rules'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='databaseconnection',
            name='database_of_agent_only_read',
        ),
    ]
