"""Floor 2: what differs between two builds, without running either.

1. `linked_kernel` reads a kernel's image: its sections, and its functions and variables by name (`KernelImage`).
2. `module_objects` reads modules: their functions and variables, with relocations by name.
3. `code_differences` compares both by name, address for name (`CodeDifferences`).
4. `affected_paths` looks which paths of a run execute a function that differs.
"""
