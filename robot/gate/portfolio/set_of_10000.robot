*** Settings ***
Documentation    A rule of nftables looks for the source among ten thousand addresses.
Metadata         Rank    primary
Metadata         Why    Block lists are sets of addresses. A single rule looks each source up in a hash of ten thousand.
Metadata         Fault    nft add rule ip gate passing ip daddr @blocked drop
Metadata         Seen In    nft_r?hash_lookup

Resource         ../../../resources/gate.resource

Test Tags        path-set-of-10000


*** Test Cases ***
A Set Of Ten Thousand Addresses
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add set ip gate blocked { type ipv4_addr; size 16384; }'
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    nft add rule ip gate passing ip saddr @blocked drop
    ...    for a in $(seq 0 99); do for b in $(seq 100); do echo 203.0.$a.$b,; done; done >list
    ...    { echo 'add element ip gate blocked {'; cat list; echo '}'; } | nft -f -
    Then It Is As Fast As Before
