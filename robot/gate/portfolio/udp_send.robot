*** Settings ***
Documentation    A program takes datagrams from a socket, and sends each on by another.
Metadata         Rank    primary
Metadata         Why    DNS servers and relays answer datagrams by sendmsg. It is the sending path of UDP from a
...              program.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-udp-send    end-host


*** Test Cases ***
UDP Sent By A Program
    Given The SUT Is Set Up With
    ...    ip address add 198.18.0.1/32 dev lo
    ...    pdrgate-relay from udp 198.18.0.1 53 to udp 198.18.0.2 53
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53 src=@in flows=256
    Then It Is As Fast As Before
