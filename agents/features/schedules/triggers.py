from django.utils.translation import gettext_lazy as _

from agents.features.schedules.models import Schedule
from agents.kernel.triggers import TriggerKind

TRIGGERS = [TriggerKind("schedule", _("schedule"), Schedule, "web:schedule")]
