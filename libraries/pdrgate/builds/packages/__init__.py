"""Packages of kernels: what is taken of a file or of the distribution's archive, and which packages make up a kernel.

`kernel_packages` puts a kernel together. Each of its packages is a file, or comes from `apt_archive`. `package_fields`
says which others it needs, and `kernel_archives` writes what it holds.
"""
