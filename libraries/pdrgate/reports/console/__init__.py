"""What a person at a terminal reads, or in the log of a CI: while a run goes on, and when it has ended."""
