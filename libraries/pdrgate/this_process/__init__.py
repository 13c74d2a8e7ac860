"""What the process of pdrgate reads and is given: files, folders, environment, signals and standard output."""
