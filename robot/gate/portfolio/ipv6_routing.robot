*** Settings ***
Documentation    The kernel forwards IPv6.

Resource         ../../../resources/gate.resource

Test Tags        path-ipv6-routing


*** Test Cases ***
IPv6 Routing
    Given The SUT Routes IPv6
    Then A Packet Costs As Much As Before
