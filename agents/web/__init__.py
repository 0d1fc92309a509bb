"""Web pages. They read through selectors, change rows through services and escape all text."""
