"""Gmail and Google Calendar for agents, with the Google account of a person or an operator.

Reading asks nobody. Whatever changes a mailbox or a calendar waits for a person.
"""
