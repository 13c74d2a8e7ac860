*** Settings ***
Documentation    The kernel forwards packets each of which is of another flow than the one before.
Metadata         Rank    secondary
Metadata         Why    A router rarely has a few flows only. GRO holds packets of more flows at a time than its lists
...              are made for.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-ipv4-routing-of-many-flows


*** Test Cases ***
IPv4 Routing Of Many Flows
    Given The SUT Routes IPv4
    And Its Packets Are Of 16384 Flows
    Then It Is As Fast As Before
