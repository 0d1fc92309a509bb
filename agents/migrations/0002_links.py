import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='approvalrequest',
            # A foreign key to the app memory, which need not be installed, until 0012.
            name='memory_edit_id',
            field=models.BigIntegerField(blank=True, null=True, unique=True),
        ),
        migrations.AddField(
            model_name='run',
            name='skill_set',
            # A foreign key to a row of skills_app, until that app had a table for it. Databases
            # with the constraint lose it with the column, in 0013_skills.
            field=models.CharField(blank=True, db_column='skill_set_id', db_index=True, max_length=64, null=True),
        ),
    ]
