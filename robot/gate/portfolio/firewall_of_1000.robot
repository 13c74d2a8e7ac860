*** Settings ***
Documentation    Each packet passes a thousand rules of nftables, none of which matches.

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
    Then A Packet Costs As Much As Before
