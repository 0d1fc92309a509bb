from agents.features.inbound_webhooks.models import InboundWebhook
from agents.kernel.triggers import TriggerKind

TRIGGERS = [TriggerKind("hook", "webhook", InboundWebhook, "web:webhook")]
