from agents.features.schedules.firing import fire_due
from agents.kernel.jobs import Job

JOBS = [Job("schedules", fire_due)]
