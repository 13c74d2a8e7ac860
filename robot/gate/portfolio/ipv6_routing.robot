*** Settings ***
Documentation    The kernel forwards IPv6.
Metadata         Rank    primary
Metadata         Why    Every Linux router forwards IPv6. Its lookup of a route is another one than IPv4's.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        ipv6


*** Test Cases ***
IPv6 Routing
    [Tags]    path-ipv6-routing    default    large-buffers
    Given The SUT Routes IPv6
    Then It Is As Fast As Before

Small Buffers
    [Tags]    ipv6-routing-small-buffers    small-buffers    -portfolio
    Given The SUT Routes IPv6
    And Its Receive Buffers Hold 512 Packets
    Then It Is As Fast As Before

Unpinned
    [Tags]    ipv6-routing-unpinned    unpinned    -portfolio
    Given The SUT Routes IPv6
    And Its Interrupts Are Pinned To    unpinned
    Then It Is As Fast As Before
