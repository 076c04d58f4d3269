"""The doors: command line, REST API, GitHub bot and dashboard."""
