"""Conditions on calls, for commands, paths, hosts and recipients.

Each condition matches in two ways. To *permit*, it must match the whole call, in the only possible
interpretation. To ask or to deny, a match of any part in any interpretation is enough.
"""
