"""Google's web services, as far as agents use them: tokens, Gmail, Calendar."""
