"""Kernels from a git tree: a revision is named, and its build is made where it is not there yet.

`revision` asks git, `configuration` makes the .config, `tree_build` compiles and keeps what came of it.
"""
