*** Settings ***
Documentation    A program has ten thousand sockets on a hundred ports, each connected to another peer.
Metadata         Rank    secondary
Metadata         Why    DNS resolvers and QUIC servers connect their UDP sockets. Lookups compare four values in a table
...              of ten thousand sockets.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-udp-connected-10000    end-host


*** Test Cases ***
Ten Thousand Connected UDP Sockets
    Given The SUT Is Set Up With
    ...    ip address add 198.18.0.1/32 dev lo
    ...    pdrgate-relay from udp 198.18.0.1 10000 sockets 100 peers 198.19.0.1 20000 100 to udp 198.18.0.2 53
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like
    ...    udp dst=198.18.0.1 dport=10000-10099 src=198.19.0.1 sport=20000-20099 flows=10000
    Then It Is As Fast As Before
