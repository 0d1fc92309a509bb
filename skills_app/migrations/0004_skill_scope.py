from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("skills_app", "0003_carry_over"),
    ]

    operations = [
        migrations.AlterField(
            model_name="skill",
            name="scope",
            field=models.CharField(max_length=1100),
        ),
        migrations.AddConstraint(
            model_name='skill',
            constraint=models.UniqueConstraint(fields=('scope', 'name'), name='skill_name_per_scope'),
        ),
    ]
