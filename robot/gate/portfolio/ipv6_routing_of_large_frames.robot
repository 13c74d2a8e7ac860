*** Settings ***
Documentation    The kernel forwards packets that fill a frame.
Metadata         Rank    secondary
Metadata         Why    Bulk transfers fill their frames. What depends on a packet's bytes, such as copies and
...              checksums, shows here and not with small frames.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-ipv6-routing-of-large-frames    ipv6    frame-sizes


*** Test Cases ***
IPv6 Routing Of Large Frames
    Given The SUT Routes IPv6
    And The Frames Have 1518 Bytes
    Then It Is As Fast As Before
