from agents.kernel.features import FeatureConfig


class CompactionConfig(FeatureConfig):
    name = "agents.features.compaction"
    label = "vel_compaction"
    verbose_name = "Compaction"
    middleware_order = {"compaction": 400, "eviction": 40}
    requires = ("agents",)
