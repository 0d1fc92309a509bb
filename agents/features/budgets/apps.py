from agents.kernel.features import FeatureConfig


class BudgetsConfig(FeatureConfig):
    name = "agents.features.budgets"
    label = "vel_budgets"
    verbose_name = "Budgets"
    order = 600
    middleware_order = {"budgets": 800}
    requires = ("agents",)
    commands = {"budgets": "List budgets."}
