"""Floor 5: what people look at. Plots, tables and files for a log, an Allure report and a CI server."""
