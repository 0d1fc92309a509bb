"""What starts runs without a person: times, message templates and signatures. No rows here."""
