*** Settings ***
Documentation    An XDP program routes by the kernel's tables.
Metadata         Rank    primary
Metadata         Why    The same for IPv6, whose lookup by the helper is another one.

Resource         ../../../resources/gate.resource

Test Tags        path-xdp-ipv6    xdp    ipv6


*** Test Cases ***
IPv6 Routing By XDP
    Given The SUT Routes IPv6 By XDP
    Then It Is As Fast As Before
