from agents.kernel.features import FeatureConfig


class MemoryConfig(FeatureConfig):
    name = "memory"
    verbose_name = "Memory"
    order = 800
    requires = ("agents",)
    commands = {"memory": "Read, change, export and import an agent's memory."}
