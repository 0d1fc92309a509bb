"""Import the modules that every run with skills needs."""

from agents.kernel.features import Preload

PRELOAD = (Preload(("skills_app.library.scan.scanning", "snowballstemmer")),)
