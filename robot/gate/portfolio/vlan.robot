*** Settings ***
Documentation    The kernel forwards between VLAN interfaces of its ports.

Resource         ../../../resources/gate.resource

Test Tags        path-vlan


*** Test Cases ***
IPv4 Behind A VLAN
    Given The SUT Carries Packets By    vlan-ipv4-routing
    Then A Packet Costs As Much As Before
