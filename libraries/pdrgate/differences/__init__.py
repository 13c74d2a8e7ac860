"""Floor 2: what differs between two builds, without running either.

1. `linked_kernel` reads a kernel's image: its sections, and its functions and variables by name (`KernelImage`).
2. `module_code` reads modules: their functions and variables, with relocations by name (`ModuleObjects`).
3. `code_differences` compares both by name, address for name (`CodeDifferences`); `kept_code` remembers the answer.
4. `affected_paths` looks which paths execute a function, or touch a variable, that differs.
5. `values_that_differ` compares what both kernels have in their variables after boot.
"""
