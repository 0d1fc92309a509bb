"""The command palette: Ctrl+K finds pages, conversations and agents by a few letters."""
