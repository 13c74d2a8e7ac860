"""Floor 6: the Robot Framework library PdrGate. Keywords parse, call the gate, and log; they decide nothing."""
