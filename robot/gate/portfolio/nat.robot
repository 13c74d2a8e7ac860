*** Settings ***
Documentation    Sources become the router's, by nftables and connection tracking.

Resource         ../../../resources/gate.resource

Test Tags        path-nat


*** Test Cases ***
NAT
    Given The SUT Translates Addresses
    Then A Packet Costs As Much As Before
