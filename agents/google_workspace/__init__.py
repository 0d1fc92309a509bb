"""Gmail and Google Calendar, as far as agents use them. Everything here blocks."""
