*** Settings ***
Documentation    Frames to the station behind the SUT go from port to port.

Resource         ../../../resources/gate.resource

Test Tags        path-bridge


*** Test Cases ***
A Bridge
    Given The SUT Bridges
    Then A Packet Costs As Much As Before    several_cpus=True
