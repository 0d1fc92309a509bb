import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_initial'),
        ('skills_app', '0001_initial'),
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
            field=models.ForeignKey(blank=True, help_text='The skills that it began with, by version. Null: not begun yet.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='skills_app.skillset'),
        ),
    ]
