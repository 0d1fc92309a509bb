"""Slack for agents: they list channels and send messages, with the bot token of a person or an
operator. Sending waits for a person.
"""
