"""Pages for people. They read through selectors, change rows through services, trust no text."""
