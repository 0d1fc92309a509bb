"""Helper processes run the statements: the crash of a driver ends no process of Vel."""
