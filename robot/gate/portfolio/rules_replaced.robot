*** Settings ***
Documentation    A thousand rules of nftables are replaced while packets pass.
Metadata         Rank    secondary
Metadata         Why    Firewall managers load a whole rule set anew. It measures the transaction of nftables and what
...              packets meet during it.
Metadata         Fault    nft monitor >/dev/null 2>&1 &
...              undo: killall nft
Metadata         Seen In    nf_tables_fill_rule_info

Resource         ../../../resources/gate.resource

Test Tags        path-rules-replaced


*** Test Cases ***
A Thousand Rules Replaced
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    for one in $(seq 1000); do echo add rule ip gate passing udp dport $one udp sport $one drop; done >list
    ...    { echo flush chain ip gate passing; cat list; } >rules && nft -f rules
    And Packets Are Sent Like    udp dst=@out dport=2000 src=@in flows=256
    And They Are Replaced While Packets Pass    nft -f rules
    Then It Is As Fast As Before
