"""The promise of docs/reference/compatibility.md, checked against the last release."""
