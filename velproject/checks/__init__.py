"""Django system checks of Vel's own project, which register themselves when imported."""
