"""Interfaces of other libraries, implemented on gristmill."""
