"""Two builds of an eBPF program compared on packets of a capture, which BPF_PROG_RUN runs one by one: no ports."""
