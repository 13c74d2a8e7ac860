*** Settings ***
Documentation    Flows that are known pass from port to port, and not through the router.
Metadata         Rank    primary
Metadata         Why    Home routers and firewalls send established flows past the stack by a flowtable. It is the
...              software offload that no other path takes.
Metadata         Fault    nft flush chain ip gate passing
Metadata         Seen In    ip_forward

Resource         ../../../resources/gate.resource

Test Tags        path-flowtable


*** Test Cases ***
A Flowtable
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft "add flowtable ip gate fast { hook ingress priority 0; devices = { $IN, $OUT }; }"
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    nft add rule ip gate passing ip protocol udp flow add @fast
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53 src=198.19.0.0/24 sport=4000 flows=254
    Then It Is As Fast As Before
