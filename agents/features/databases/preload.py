from agents.features.databases.models import DatabaseConnection
from agents.kernel.features import Preload

DRIVERS = ("agents.features.databases.drivers.write",)
PRELOAD = (Preload(DRIVERS, DatabaseConnection.objects.exists),)
