"""Other libraries' interfaces, on gristmill."""
