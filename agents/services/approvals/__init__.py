"""Approval requests and the decisions of people."""
