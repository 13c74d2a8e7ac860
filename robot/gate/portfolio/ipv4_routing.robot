*** Settings ***
Documentation    The kernel forwards IPv4.

Resource         ../../../resources/gate.resource

Test Tags        path-ipv4-routing


*** Test Cases ***
IPv4 Routing
    Given The SUT Routes IPv4
    Then A Packet Costs As Much As Before    several_cpus=True
