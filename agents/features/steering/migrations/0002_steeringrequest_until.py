from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('vel_steering', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='steeringrequest',
            name='until',
            field=models.PositiveIntegerField(help_text='The number of the last waiting run whose message joins the run. Null: the run stops after its running call.', null=True),
        ),
    ]
