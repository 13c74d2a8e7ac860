"""BPF programs and maps (floor 2): loading them on any host, and the system call on this one."""
