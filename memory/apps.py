from agents.kernel.features import FeatureConfig


class MemoryConfig(FeatureConfig):
    name = "memory"
    verbose_name = "Memory"
    order = 800
    requires = ("agents", "skills_app")
    commands = {"memory": "Read, change, export and import what an agent remembers."}
