"""`python -m velproject.cli`: the `vel` command without its installed script."""

from velproject.cli.main import main

main()
