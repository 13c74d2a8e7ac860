*** Settings ***
Documentation    Each packet goes to another address than the one before, and the kernel routes each by itself.

Resource         ../../../resources/gate.resource

Test Tags        path-ipv4-many-destinations


*** Test Cases ***
IPv4 Routing To Many Destinations
    Given The SUT Routes IPv4
    And Packets Are Sent Like    udp dst=198.18.0.0/20 dport=53 src=@in
    Then A Packet Costs As Much As Before
