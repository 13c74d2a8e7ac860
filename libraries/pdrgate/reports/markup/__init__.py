"""Markup in which no name becomes structure: HTML, Markdown, Robot documentation, and whole files."""
