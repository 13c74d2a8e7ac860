*** Settings ***
Documentation    The SUT is a segment of the packets' routing header.

Resource         ../../../resources/gate.resource

Test Tags        path-srv6-end


*** Test Cases ***
Ends Of IPv6 Segments
    Given The SUT Ends IPv6 Segments
    Then A Packet Costs As Much As Before    frame=128
