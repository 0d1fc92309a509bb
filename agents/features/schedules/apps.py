from agents.kernel.features import FeatureConfig


class SchedulesConfig(FeatureConfig):
    name = "agents.features.schedules"
    label = "vel_schedules"
    verbose_name = "Schedules"
    order = 700
    requires = ("agents",)
    commands = {"schedules": "List, start, pause and resume schedules."}
