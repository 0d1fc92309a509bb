"""Build the files of a release: `make release`. See docs/contributing/release.md."""
