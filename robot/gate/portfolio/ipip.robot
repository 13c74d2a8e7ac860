*** Settings ***
Documentation    The far network is behind IPIP tunnels from router to router.
Metadata         Rank    secondary
Metadata         Why    Load balancers and some container networks send IPv4 in IPv4. It is GRE without its header: what
...              differs between both is that header's cost.
Metadata         Fault    tc qdisc add dev gate0 clsact && tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-ipip


*** Test Cases ***
An IPIP Tunnel
    Given The SUT Is Set Up With
    ...    ip link add gate0 type ipip local $OUT_IP4 remote $OUT_PEER_IP4 ttl 64 && ip link set gate0 up
    ...    ip link add gate1 type ipip local $IN_IP4 remote $IN_PEER_IP4 ttl 64 && ip link set gate1 up
    ...    for half in 0 128; do ip route add 198.18.$half.0/17 dev gate0; done
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=256
    Then It Is As Fast As Before
