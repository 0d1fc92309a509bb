from django.utils.translation import gettext_lazy as _

from agents.features.inbound_webhooks.models import InboundWebhook
from agents.kernel.triggers import TriggerKind

TRIGGERS = [TriggerKind("hook", _("webhook"), InboundWebhook, "web:webhook")]
