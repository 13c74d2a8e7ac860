"""The search for loads (floor 3): RFC 9971 MLRsearch, and the calibration that gives it its highest load."""
