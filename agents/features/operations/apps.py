from agents.kernel.features import FeatureConfig


class OperationsConfig(FeatureConfig):
    name = "agents.features.operations"
    label = "vel_operations"
    verbose_name = "Operations"
    order = 1000
    requires = ("agents",)
    commands = {
        "backup": "Make, list, check and delete backups.",
        "database": "Move the database of Vel itself.",
        "restore": "Restore a backup.",
        "service": "Run Vel as a service of systemd.",
        "upgrade": "Show the necessary steps before an upgrade.",
    }
