*** Settings ***
Documentation    Connections are tracked, and none is translated.
Metadata         Rank    primary
Metadata         Why    Stateful firewalls track connections and most of their packets belong to known ones. It
...              separates the cost of tracking from that of translation, which NAT adds.
Metadata         Fault    nft add rule ip gate passing ct mark 7 drop
Metadata         Seen In    nft_ct_get

Resource         ../../../resources/gate.resource

Test Tags        path-conntrack


*** Test Cases ***
Connection Tracking
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    nft add rule ip gate passing ct state invalid drop
    Then It Is As Fast As Before    several_cpus=True
