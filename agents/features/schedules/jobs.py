"""Each worker starts the runs of due schedules."""

from agents.kernel.features import Job
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # It takes 5 ms, and processes of commands leave this job to workers.
    from agents.features.schedules import firing

JOBS = [Job("schedules", lambda: firing.fire_due())]
