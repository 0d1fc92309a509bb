"""`vel doctor`: checks of this machine, with advice for repairs."""
