*** Settings ***
Documentation    The kernel finds each packet's route among a hundred thousand, some of which are nested.
Metadata         Rank    primary
Metadata         Why    Routers with a large part of the Internet's table look up among so many routes. The tree does
...              not fit into small caches.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-routes-100000


*** Test Cases ***
A Hundred Thousand Routes
    Given The SUT Is Set Up With
    ...    pdrgate-routes add 100000 $OUT $OUT_PEER_IP4
    ...    undo: pdrgate-routes delete 100000 $OUT $OUT_PEER_IP4
    And Packets Are Sent Like    udp dst=10.0.0.0/9 dport=53 src=@in flows=16384
    Then It Is As Fast As Before
