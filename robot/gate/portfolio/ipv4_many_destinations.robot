*** Settings ***
Documentation    Each packet goes to another address than the one before, and the kernel routes each by itself.
Metadata         Rank    secondary
Metadata         Why    Traffic of the Internet goes to many addresses. No destination is met again soon, so that caches
...              of routes and next hops do not help.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook forward priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-ipv4-many-destinations


*** Test Cases ***
IPv4 Routing To Many Destinations
    Given The SUT Routes IPv4
    And Packets Are Sent Like    udp dst=198.18.0.0/20 dport=53 src=@in
    Then It Is As Fast As Before
