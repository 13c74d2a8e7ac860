*** Settings ***
Documentation    Each packet passes a hundred rules of nftables, none of which matches.
Metadata         Rank    primary
Metadata         Why    A router with a list of nftables rules evaluates them for each packet. It is the path that shows
...              the cost of the rule evaluation itself.
Metadata         Fault    for n in $(seq 100); do nft add rule ip gate passing udp sport $n drop || exit; done
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-firewall


*** Test Cases ***
A Firewall Of A Hundred Rules
    Given The SUT Filters By A Hundred Rules
    Then It Is As Fast As Before
