*** Settings ***
Documentation    The SUT is a segment of the packets' routing header.
Metadata         Rank    secondary
Metadata         Why    A router within such a network ends a segment. It parses the routing header and looks the next
...              segment up.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        srv6


*** Test Cases ***
Ends Of IPv6 Segments
    [Tags]    path-srv6-end
    Given The SUT Ends IPv6 Segments
    And The Frames Have 128 Bytes
    Then It Is As Fast As Before

Ends Of Many IPv6 Segments
    [Documentation]    A routing header through eight hops fits into 256 bytes.
    [Tags]    srv6-end-ends-of-many-ipv6-segments    -portfolio
    Given The SUT Ends IPv6 Segments
    And The Frames Have 256 Bytes
    Then It Is As Fast As Before
