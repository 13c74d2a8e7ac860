*** Settings ***
Documentation    The kernel finds each packet's route among a thousand, some of which are nested.
Metadata         Rank    secondary
Metadata         Why    A company's router knows some thousand routes. The tree of routes is deep enough that lookups
...              backtrack, and small enough for the caches.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-routes-1000


*** Test Cases ***
A Thousand Routes
    Given The SUT Is Set Up With
    ...    for n in $(seq 250); do for end in 0.0/16 16.0/20 16.0/24 16.16/28; do echo 10.$n.$end; done; done >list
    ...    sed "s/.*/route add & via $OUT_PEER_IP4/" list | ip -batch -
    ...    undo: ip route flush root 10.0.0.0/8 via $OUT_PEER_IP4
    And Packets Are Sent Like    udp dst=10.1.0.0-10.250.31.255 dport=53 src=@in flows=4096
    Then It Is As Fast As Before
