*** Settings ***
Documentation    A program sends many datagrams by one call, and the kernel cuts them apart (UDP_SEGMENT).
Metadata         Rank    secondary
Metadata         Why    QUIC senders hand over many datagrams by one call. The kernel cuts them apart, which is another
...              way through the stack than one call for each.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-udp-send-segments    end-host


*** Test Cases ***
UDP Sent By A Program In Segments
    Given The SUT Is Set Up With
    ...    ip address add 198.18.0.1/32 dev lo
    ...    pdrgate-relay from udp 198.18.0.1 53 to udp 198.18.0.2 53 segments
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53 src=@in flows=256
    Then It Is As Fast As Before
