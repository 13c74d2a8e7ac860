"""The kind local-netns: routers in a row, each a network namespace of this machine."""
