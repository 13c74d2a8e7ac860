"""Comparisons of builds: boots in pairs, the rule that ends them, and what is built of comparisons."""
