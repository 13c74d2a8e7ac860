*** Settings ***
Documentation    Each packet goes to another IPv6 address than the one before, and a thousand routes are known.
Metadata         Rank    secondary
Metadata         Why    Routers of providers know many IPv6 prefixes. Lookups descend the tree of routes for each packet
...              in place of meeting the same leaf.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-ipv6-many-destinations


*** Test Cases ***
IPv6 Routing To Many Destinations
    Given The SUT Routes IPv6
    And The SUT Is Set Up With
    ...    for n in $(seq 1000); do printf 'route add 2001:2:0:1:%x::/80 via %s\n' $n $OUT_PEER_IP6; done >list
    ...    ip -6 -batch list
    ...    undo: sed 's/ add / delete /' list | ip -6 -batch -
    And Packets Are Sent Like    udp dst=2001:2:0:1::/68 dport=53 src=@in
    Then It Is As Fast As Before
