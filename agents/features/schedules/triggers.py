from agents.features.schedules.models import Schedule
from agents.kernel.triggers import TriggerKind

TRIGGERS = [TriggerKind("schedule", "schedule", Schedule, "web:schedule")]
