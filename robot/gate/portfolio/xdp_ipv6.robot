*** Settings ***
Documentation    An XDP program routes by the kernel's tables.

Resource         ../../../resources/gate.resource

Test Tags        path-xdp-ipv6


*** Test Cases ***
IPv6 Routing By XDP
    Given The SUT Routes IPv6 By XDP
    Then A Packet Costs As Much As Before
