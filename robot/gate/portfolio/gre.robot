*** Settings ***
Documentation    The far network is behind GRE tunnels from router to router.
Metadata         Rank    primary
Metadata         Why    Providers join sites by GRE. It is the simplest tunnel that carries any protocol, with a header
...              that is built and parsed for each packet.
Metadata         Fault    tc qdisc add dev gate0 clsact && tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-gre


*** Test Cases ***
A GRE Tunnel
    Given The SUT Is Set Up With
    ...    ip link add gate0 type gre local $OUT_IP4 remote $OUT_PEER_IP4 ttl 64 && ip link set gate0 up
    ...    ip link add gate1 type gre local $IN_IP4 remote $IN_PEER_IP4 ttl 64 && ip link set gate1 up
    ...    for half in 0 128; do ip route add 198.18.$half.0/17 dev gate0; done
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=256
    Then It Is As Fast As Before
