"""`vel doctor`: what works on this machine, and how to repair the rest."""
