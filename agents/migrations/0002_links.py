import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_initial'),
        ('memory', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='approvalrequest',
            name='memory_edit',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='approval', to='memory.memoryeditrequest'),
        ),
        migrations.AddField(
            model_name='run',
            name='skill_set',
            # A foreign key to a row of skills_app, until that app had a table for it. Databases
            # with the constraint lose it with the column, in 0012_skills.
            field=models.CharField(blank=True, db_column='skill_set_id', db_index=True, max_length=64, null=True),
        ),
    ]
