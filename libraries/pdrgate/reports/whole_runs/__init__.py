"""All reports of one run made again, and the runs of several machines as one."""
