*** Settings ***
Documentation    The far network is behind tunnels from router to router.

Resource         ../../../resources/gate.resource

Test Tags        path-vxlan


*** Test Cases ***
A VXLAN Tunnel
    Given The SUT Tunnels By VXLAN
    Then A Packet Costs As Much As Before
