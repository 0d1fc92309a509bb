"""`python -m velproject.cli`: the `vel` command where its script is not installed."""

from velproject.cli.main import main

main()
