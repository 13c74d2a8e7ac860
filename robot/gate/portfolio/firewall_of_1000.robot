*** Settings ***
Documentation    Each packet passes a thousand rules of nftables, none of which matches.
Metadata         Rank    secondary
Metadata         Why    Generated rule sets have a thousand rules and more. A cost for each rule that the path of a
...              hundred hides is ten times as large here.
Metadata         Fault    nft -f rules
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-firewall-of-1000


*** Test Cases ***
A Firewall Of A Thousand Rules
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    for one in $(seq 1000); do echo add rule ip gate passing udp dport $one udp sport $one drop; done >rules
    ...    nft -f rules
    And Packets Are Sent Like    udp dst=@out dport=2000 src=@in flows=256
    Then It Is As Fast As Before
