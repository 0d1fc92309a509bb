"""What the commands do. Imported by `velproject.cli.boot.perform` after Django is set up."""
