"""Names of lines of data: read in a guest's memory after a trial."""
