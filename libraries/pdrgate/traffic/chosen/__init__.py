"""Traffic of the user's own choice: words such as ``udp dst=198.18.0.1 dport=53 flows=1000``, or a capture file.

The words become whole frames here, with every checksum in them. A generator sends these as they are; only the mark in
their last bytes, by which its packets are known again, differs from packet to packet.
"""
