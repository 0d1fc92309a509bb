from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "skills_app"
    declares_settings = True
    verbose_name = "Skills"
    default_auto_field = "django.db.models.BigAutoField"
