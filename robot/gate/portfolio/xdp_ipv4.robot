*** Settings ***
Documentation    An XDP program routes by the kernel's tables.

Resource         ../../../resources/gate.resource

Test Tags        path-xdp-ipv4


*** Test Cases ***
IPv4 Routing By XDP
    Given The SUT Routes IPv4 By XDP
    Then A Packet Costs As Much As Before
