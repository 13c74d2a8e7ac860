*** Settings ***
Documentation    Each packet is received by itself.

Resource         ../../../resources/gate.resource

Test Tags        path-no-gro


*** Test Cases ***
Routing Without GRO
    Given The SUT Routes IPv6
    And GRO Is Off
    Then A Packet Costs As Much As Before
