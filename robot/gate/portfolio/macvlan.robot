*** Settings ***
Documentation    Packets come in by a macvlan of a port, and leave by one.
Metadata         Rank    secondary
Metadata         Why    Containers and guests get addresses of the physical network by macvlan. Receivers are found by a
...              hash of the MAC address above the port.
Metadata         Fault    tc qdisc add dev gate0 clsact && tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-macvlan


*** Test Cases ***
Macvlans
    Given The SUT Is Set Up With
    ...    ip link add gate0 link $OUT type macvlan mode bridge && ip link set gate0 up
    ...    ip link add gate1 link $IN address 02:00:00:00:08:01 type macvlan mode bridge && ip link set gate1 up
    ...    ip neighbour add $OUT_PEER_IP4 lladdr $OUT_PEER_MAC dev gate0 nud permanent
    ...    for half in 0 128; do ip route add 198.18.$half.0/17 via $OUT_PEER_IP4 dev gate0 onlink; done
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in dmac=02:00:00:00:08:01 flows=256
    Then It Is As Fast As Before
