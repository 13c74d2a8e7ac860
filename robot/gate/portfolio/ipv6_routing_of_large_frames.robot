*** Settings ***
Documentation    The kernel forwards packets that fill a frame.

Resource         ../../../resources/gate.resource

Test Tags        path-ipv6-routing-of-large-frames


*** Test Cases ***
IPv6 Routing Of Large Frames
    Given The SUT Routes IPv6
    Then A Packet Costs As Much As Before    frame=1518
