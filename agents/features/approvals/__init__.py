"""Approvals: the gate of every run, and the doors through which people decide.

The policy of the agent, the grants of people and the trials of tools decide whether a call may be
made. Other calls wait for a person, and a decision is valid for the state that the person has seen.
"""
