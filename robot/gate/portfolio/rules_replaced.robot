*** Settings ***
Documentation    A thousand rules of nftables are replaced while packets pass.

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
    Then They Are Replaced As Fast As Before    nft -f rules
