*** Settings ***
Documentation    Each packet is of another flow, and the flow decides by which of two gateways it leaves.
Metadata         Rank    secondary
Metadata         Why    Routers of data centres spread flows over equal routes. Each packet's headers are hashed to
...              choose its next hop.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-multipath


*** Test Cases ***
IPv4 Routing By Several Paths
    Given The SUT Is Set Up With
    ...    ip neighbour add 10.211.$HOP.9 lladdr $OUT_PEER_MAC dev $OUT nud permanent
    ...    sysctl -n net.ipv4.fib_multipath_hash_policy >was && sysctl -qw net.ipv4.fib_multipath_hash_policy=1
    ...    undo: sysctl -qw net.ipv4.fib_multipath_hash_policy=$(cat was)
    ...    ip nexthop add id 1 via $OUT_PEER_IP4 dev $OUT && ip nexthop add id 2 via 10.211.$HOP.9 dev $OUT
    ...    undo: ip nexthop flush
    ...    ip nexthop add id 3 group 1/2 && for half in 0 128; do ip route add 198.18.$half.0/17 nhid 3; done
    And Its Packets Are Of 4096 Flows
    Then It Is As Fast As Before
