"""What a line of data is, by its own name: read in a guest's memory after a trial."""
