import agents.ids
import django.core.validators
import django.db.models.deletion
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0012_compaction'),
        ('memory', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Allowance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('window', models.CharField(blank=True, help_text='As 2026-11-22, or 2026-11.', max_length=10)),
                ('max_tokens', models.PositiveBigIntegerField(null=True)),
                ('max_microusd', models.PositiveBigIntegerField(null=True)),
                ('extra_tokens', models.PositiveBigIntegerField(default=0)),
                ('extra_microusd', models.PositiveBigIntegerField(default=0)),
                ('used_tokens', models.PositiveBigIntegerField(default=0)),
                ('used_microusd', models.PositiveBigIntegerField(default=0)),
                ('reserved_tokens', models.PositiveBigIntegerField(default=0)),
                ('reserved_microusd', models.PositiveBigIntegerField(default=0)),
                ('warned_tokens', models.BooleanField(default=False)),
                ('warned_cost', models.BooleanField(default=False)),
                ('allows_unpriced', models.BooleanField(default=False, help_text='Calls whose price is not known may be made.')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                ('period', models.CharField(choices=[('day', 'day'), ('month', 'month')], default='month', help_text='By the calendar, in the time zone of each thread.', max_length=10)),
                ('max_tokens', models.PositiveBigIntegerField(blank=True, help_text='All tokens together. Empty: no limit.', null=True)),
                ('max_cost', models.DecimalField(blank=True, decimal_places=6, help_text='US dollars. Empty: no limit.', max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(Decimal('0'))])),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['created_at'],
            },
        ),
        migrations.AddField(
            model_name='message',
            name='cost_microusd',
            field=models.PositiveBigIntegerField(help_text='Of this reply. Null: its price is not known, or was not stored.', null=True),
        ),
        migrations.AddField(
            model_name='runclock',
            name='budgeted',
            field=models.BooleanField(default=False, help_text='A budget was made that its calls count in, while it ran.'),
        ),
        migrations.AddField(
            model_name='runclock',
            name='refusal',
            field=models.TextField(blank=True, help_text='A person gave it no more: it ends with this when it goes on.'),
        ),
        migrations.AddField(
            model_name='runclock',
            name='refusal_code',
            field=models.CharField(blank=True, max_length=50),
        ),
        migrations.AddField(
            model_name='runclock',
            name='reserved_from',
            field=models.CharField(blank=True, help_text='The allowances that this was taken from.', max_length=200),
        ),
        migrations.AddField(
            model_name='runclock',
            name='reserved_microusd',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='runclock',
            name='reserved_tokens',
            field=models.PositiveBigIntegerField(default=0, help_text='For the model call under way: the worst case.'),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('turn__gt', 0)), fields=['created_at'], name='reply_time'),
        ),
        migrations.AddField(
            model_name='allowance',
            name='run',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='allowance', to='agents.run'),
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='allowance',
            field=models.ForeignKey(blank=True, help_text='What is used up, where more is asked for.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='approvals', to='agents.allowance'),
        ),
        migrations.AddField(
            model_name='runclock',
            name='waits_for',
            field=models.ForeignKey(blank=True, help_text='What was used up when it was last parked for a budget.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='waiting', to='agents.allowance'),
        ),
        migrations.AddConstraint(
            model_name='approvalrequest',
            constraint=models.UniqueConstraint(condition=models.Q(('allowance__isnull', False), ('status', 'pending')), fields=('run', 'allowance'), name='one_pending_request_per_allowance'),
        ),
        migrations.AddField(
            model_name='budget',
            name='agent',
            field=models.ForeignKey(blank=True, help_text='Whose runs count. Empty: those of all agents.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to='agents.agent'),
        ),
        migrations.AddField(
            model_name='budget',
            name='user',
            field=models.ForeignKey(blank=True, help_text='Whose runs count. Empty: those of all users, together.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='allowance',
            name='budget',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='windows', to='agents.budget'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(('agent__isnull', False), ('user__isnull', False), _connector='OR'), name='budget_of_somebody', violation_error_message="Say whose budget it is: an agent's, a user's, or a user's with one agent."),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(('max_tokens__isnull', False), ('max_cost__isnull', False), _connector='OR'), name='budget_limits_something', violation_error_message='Set a limit: of tokens, of cost, or both.'),
        ),
        migrations.AddConstraint(
            model_name='allowance',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('budget__isnull', True), ('run__isnull', False)), models.Q(('budget__isnull', False), ('run__isnull', True)), _connector='OR'), name='allowance_of_run_or_window'),
        ),
        migrations.AddConstraint(
            model_name='allowance',
            constraint=models.UniqueConstraint(condition=models.Q(('budget__isnull', False)), fields=('budget', 'window'), name='one_allowance_per_window'),
        ),
    ]
