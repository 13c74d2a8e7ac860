*** Settings ***
Documentation    A program has ten thousand sockets, of a port each, and sends on what any of them gets.
Metadata         Rank    secondary
Metadata         Why    Media relays have a port for each call. Ten thousand ports fill the hash table of sockets, and
...              the program waits for all of them at once.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-udp-sockets-10000    end-host


*** Test Cases ***
Ten Thousand UDP Sockets
    Given The SUT Is Set Up With
    ...    ip address add 198.18.0.1/32 dev lo
    ...    pdrgate-relay from udp 198.18.0.1 10000 sockets 10000 to udp 198.18.0.2 53
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=10000-19999 sport=53 src=198.19.0.1 flows=10000
    Then It Is As Fast As Before
