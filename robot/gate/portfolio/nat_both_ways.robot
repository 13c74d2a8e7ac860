*** Settings ***
Documentation    Sources are translated one to one, and so are the destinations of the answers.
Metadata         Rank    secondary
Metadata         Why    Providers translate one to one, and answers come back the other way. Both directions of a
...              tracked connection are looked up and rewritten.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook forward priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-nat-both-ways


*** Test Cases ***
NAT Both Ways
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate coming { type nat hook prerouting priority dstnat; }'
    ...    nft 'add chain ip gate leaving { type nat hook postrouting priority srcnat; }'
    ...    nft add rule ip gate leaving snat ip prefix to ip saddr map { 198.19.0.0/24 : 203.0.113.0/24 }
    ...    nft add rule ip gate coming dnat ip prefix to ip daddr map { 203.0.113.0/24 : 198.19.0.0/24 }
    And Packets Are Sent Like
    ...    udp dst=198.18.0.1 dport=53 src=198.19.0.0/24 sport=4000 flows=254
    ...    udp dst=203.0.113.0/24 dport=4000 src=198.18.0.1 sport=53 from=out flows=254
    Then It Is As Fast As Before
