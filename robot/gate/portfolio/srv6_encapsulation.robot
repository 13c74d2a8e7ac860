*** Settings ***
Documentation    Packets are put into others with a routing header.
Metadata         Rank    secondary
Metadata         Why    Providers steer traffic by segments that an edge router adds. Each packet is put into another
...              with a routing header.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-srv6-encapsulation    srv6


*** Test Cases ***
Encapsulation In IPv6 Segments
    Given The SUT Routes IPv6
    And The SUT Is Set Up With
    ...    ip -6 route add 2001:2:0:1:8000::/65 encap seg6 mode encap segs $OUT_PEER_IP6 via $OUT_PEER_IP6 dev $OUT
    ...    undo: ip -6 route delete 2001:2:0:1:8000::/65
    And Packets Are Sent Like    udp dst=2001:2:0:1:8000::1 dport=53 src=@in flows=256
    And The Frames Have 128 Bytes
    Then It Is As Fast As Before
