"""QEMU as a guest's machine: what it emulates, how it is started, and what it may do."""
