from agents.kernel.features import FeatureConfig


class CommandPaletteConfig(FeatureConfig):
    name = "agents.features.command_palette"
    label = "vel_command_palette"
    verbose_name = "Command palette"
    order = 670
    requires = ("agents",)
