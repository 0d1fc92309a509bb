"""Slack for agents: list channels and send messages, with a person's or an operator's bot token.

Sending requires approval.
"""
