"""Tools for `docs/`: the generated reference pages, and the screenshots."""
