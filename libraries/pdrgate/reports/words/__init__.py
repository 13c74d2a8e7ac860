"""A result in words, the same for all reports: sentences, lines and the cells of tables."""
