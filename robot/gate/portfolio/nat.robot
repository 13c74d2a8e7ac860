*** Settings ***
Documentation    Sources become the router's, by nftables and connection tracking.
Metadata         Rank    primary
Metadata         Why    Home routers and container hosts translate sources. It is the path with connection tracking and
...              rewriting of headers together.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook forward priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-nat


*** Test Cases ***
NAT
    Given The SUT Translates Addresses
    Then It Is As Fast As Before
