"""Ask people, and take their decisions."""
