*** Settings ***
Documentation    The kernel forwards packets each of which is of another flow than the one before.

Resource         ../../../resources/gate.resource

Test Tags        path-ipv4-routing-of-many-flows


*** Test Cases ***
IPv4 Routing Of Many Flows
    Given The SUT Routes IPv4
    Then A Packet Costs As Much As Before    flows=16384
