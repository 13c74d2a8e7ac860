"""What is stored, judged again without a testbed."""
