"""The worker: the only program of pdrgate that loads a TRex client, which is GPLv2, and so a process of its own.

It imports nothing of pdrgate and runs on Python 3.8 and newer, for a client may need another interpreter than ours.
The clients end the process group of their parent when their server is silent; `supervisor` gives them a parent that
is nobody else's.
"""
