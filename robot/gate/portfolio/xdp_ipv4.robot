*** Settings ***
Documentation    An XDP program routes by the kernel's tables.
Metadata         Rank    primary
Metadata         Why    XDP routers and load balancers forward before the stack. It is the cost of a driver, a program,
...              and the kernel's table asked by a helper.

Resource         ../../../resources/gate.resource

Test Tags        path-xdp-ipv4    xdp    ipv4


*** Test Cases ***
IPv4 Routing By XDP
    Given The SUT Routes IPv4 By XDP
    Then It Is As Fast As Before
