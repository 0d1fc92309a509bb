from agents.features.inbound_webhooks.actions import delete_all

BEFORE_REMOVAL = [delete_all]
