*** Settings ***
Documentation    Each packet is of another flow than those before it.

Resource         ../../../resources/gate.resource

Test Tags        path-flows-64k


*** Test Cases ***
Sixty-Four Thousand Flows
    Given The SUT Routes IPv4
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=65536
    Then A Packet Costs As Much As Before
