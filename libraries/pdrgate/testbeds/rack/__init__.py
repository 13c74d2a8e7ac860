"""The kind rack: a SUT that is there already, and a generator whose two ports it is cabled to."""
