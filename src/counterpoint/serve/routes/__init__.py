"""The routes of the HTTP API, one router per file."""
