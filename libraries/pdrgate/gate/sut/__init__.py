"""The SUT that is measured: set up for a scenario, looked at, asked for trials, and put back."""
