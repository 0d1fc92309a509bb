"""Clients of the Google services that agents use: tokens, Gmail, Calendar."""
