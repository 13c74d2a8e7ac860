*** Settings ***
Documentation    The kernel forwards IPv4.
Metadata         Rank    primary
Metadata         Why    Every Linux router forwards IPv4. It is the shortest path through the stack, on which a small
...              cost is a large share.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        ipv4


*** Test Cases ***
IPv4 Routing
    [Tags]    path-ipv4-routing    large-buffers
    Given The SUT Routes IPv4
    Then It Is As Fast As Before    several_cpus=True

Small Buffers
    [Tags]    ipv4-routing-small-buffers    small-buffers    -portfolio
    Given The SUT Routes IPv4
    And Its Receive Buffers Hold 512 Packets
    Then It Is As Fast As Before

Full-Size Frames
    [Tags]    ipv4-routing-full-size-frames    frame-sizes    -portfolio
    Given The SUT Routes IPv4
    And The Frames Have 1518 Bytes
    Then It Is As Fast As Before
