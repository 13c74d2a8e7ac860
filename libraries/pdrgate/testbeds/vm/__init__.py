"""The kind local-vm: a guest of this machine that boots kernel builds."""
