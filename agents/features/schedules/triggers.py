from agents.kernel.triggers import TriggerKind
from agents.models import Schedule

TRIGGERS = [TriggerKind("schedule", "schedule", Schedule, "web:schedule")]
