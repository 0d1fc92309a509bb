import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_initial'),
        ('memory', '0001_initial'),
        ('skills_app', '0001_initial'),
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
            field=models.ForeignKey(blank=True, help_text='The skills that it began with, by version. Null: not begun yet.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='skills_app.skillset'),
        ),
    ]
