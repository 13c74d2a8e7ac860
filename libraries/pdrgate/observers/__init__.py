"""What the machine says about itself: counters around a trial, the environment of a run."""
