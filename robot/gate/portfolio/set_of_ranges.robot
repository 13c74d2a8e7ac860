*** Settings ***
Documentation    A rule of nftables looks for the source and the port among two thousand pairs of ranges.
Metadata         Rank    secondary
Metadata         Why    Policies of address and port ranges are sets of concatenated intervals. They are looked up by
...              another algorithm than plain sets.
Metadata         Fault    nft add rule ip gate passing ip daddr . udp dport @blocked drop
Metadata         Seen In    nft_pipapo

Resource         ../../../resources/gate.resource

Test Tags        path-set-of-ranges


*** Test Cases ***
A Set Of Ranges
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add set ip gate blocked { type ipv4_addr . inet_service; flags interval; }'
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    nft add rule ip gate passing ip saddr . udp dport @blocked drop
    ...    for a in $(seq 20); do for b in $(seq 100); do echo 203.$a.$b.0/25 . $b-2000,; done; done >list
    ...    { echo 'add element ip gate blocked {'; cat list; echo '}'; } | nft -f -
    Then It Is As Fast As Before
