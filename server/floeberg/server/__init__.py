"""The coordinator: catalogs, planning, the fleet of workers, and the Flight service in front."""
