from agents.kernel.features import FeatureConfig


class FileBrowserConfig(FeatureConfig):
    name = "agents.features.file_browser"
    label = "vel_file_browser"
    verbose_name = "File browser"
    order = 660
    requires = ("agents",)
