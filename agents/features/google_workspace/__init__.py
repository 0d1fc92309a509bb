"""Gmail and Google Calendar for agents, with the Google account of a person or an operator.

Tools that read need no approval. Tools that change a mailbox or a calendar require approval.
"""
