import agents.ids
import django.core.validators
import django.db.models.deletion
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models

from agents.create_models import CreateModels


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels(
            models=[migrations.CreateModel(
                name='Allowance',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('run', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='allowance', to='agents.run')),
                    ('budget', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='windows', to='vel_budgets.budget')),
                    ('window', models.CharField(blank=True, help_text='For example 2026-11-22 or 2026-11.', max_length=10)),
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
                    ('allows_unpriced', models.BooleanField(default=False, help_text='Calls with an unknown price are allowed.')),
                ],
                options={
                    'ordering': ['id'],
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('budget__isnull', True), ('run__isnull', False)), models.Q(('budget__isnull', False), ('run__isnull', True)), _connector='OR'), name='allowance_of_run_or_window'), models.UniqueConstraint(condition=models.Q(('budget__isnull', False)), fields=('budget', 'window'), name='one_allowance_per_window')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='Budget',
                fields=[
                    ('id', models.CharField(default=agents.ids.new_id, editable=False, max_length=26, primary_key=True, serialize=False)),
                    ('agent', models.ForeignKey(blank=True, help_text='The agent that it limits. Empty: all agents.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to='agents.agent')),
                    ('user', models.ForeignKey(blank=True, help_text='The user that it limits. Empty: all users together.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to=settings.AUTH_USER_MODEL)),
                    ('trigger', models.CharField(blank=True, editable=False, help_text='The id of a `Run.trigger`. Only its runs count.', max_length=26, null=True)),
                    ('trigger_name', models.CharField(blank=True, db_default='', default='', editable=False, help_text='The name of the trigger.', max_length=200)),
                    ('period', models.CharField(choices=[('day', 'day'), ('month', 'month')], default='month', help_text='By the calendar, in the time zone of each thread.', max_length=10)),
                    ('max_tokens', models.PositiveBigIntegerField(blank=True, help_text='All tokens together. Empty: no limit.', null=True)),
                    ('max_cost', models.DecimalField(blank=True, decimal_places=6, help_text='US dollars. Empty: no limit.', max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(Decimal('0'))])),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['created_at'],
                    'constraints': [models.CheckConstraint(condition=models.Q(('agent__isnull', False), ('user__isnull', False), ('trigger__isnull', False), _connector='OR'), name='budget_of_somebody', violation_error_message="Choose the agent, the user, or both, whose runs the budget limits."), models.CheckConstraint(condition=models.Q(('max_tokens__isnull', False), ('max_cost__isnull', False), _connector='OR'), name='budget_limits_something', violation_error_message='Set a limit: of tokens, of cost, or both.')],
                    'indexes': [],
                },
            ), migrations.CreateModel(
                name='BudgetRequest',
                fields=[
                    ('request', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='budget_request', serialize=False, to='agents.approvalrequest')),
                    ('allowance', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='requests', to='vel_budgets.allowance')),
                ],
                options={
                    'indexes': [],
                    'constraints': [],
                },
            ), migrations.CreateModel(
                name='RunBudget',
                fields=[
                    ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='budget', serialize=False, to='agents.run')),
                    ('reserved_tokens', models.PositiveBigIntegerField(default=0, help_text='The maximum for the current model call.')),
                    ('reserved_microusd', models.PositiveBigIntegerField(default=0)),
                    ('reserved_from', models.CharField(blank=True, help_text='The allowances that this was taken from.', max_length=200)),
                    ('waits_for', models.ForeignKey(blank=True, help_text='The allowance that was used up when it was last parked for a budget.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='waiting', to='vel_budgets.allowance')),
                    ('refusal_code', models.CharField(blank=True, max_length=50)),
                    ('refusal', models.TextField(blank=True, help_text='The message with which it ends, because a person did not increase the budget.')),
                ],
                options={
                    'indexes': [],
                    'constraints': [],
                },
            )],
        ),
    ]
