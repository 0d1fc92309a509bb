from agents.kernel.features import FeatureConfig


class DatabasesConfig(FeatureConfig):
    name = "agents.features.databases"
    label = "vel_databases"
    verbose_name = "Databases"
    order = 400
    requires = ("agents",)
    commands = {"databases": "List databases that agents may read, and remove one's own."}
