"""The system under test: the hosts it runs on, what is set on them, and how all of it is put back."""
