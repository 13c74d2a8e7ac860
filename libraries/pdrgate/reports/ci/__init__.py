"""A result as a CI reads it: JUnit, Markdown, Allure, and the formats of others."""
