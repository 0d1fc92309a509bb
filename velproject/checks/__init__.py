"""Django system checks of Vel's own project. They register themselves when they are imported."""
