*** Settings ***
Documentation    Each packet passes a hundred rules of nftables, none of which matches.

Resource         ../../../resources/gate.resource

Test Tags        path-firewall


*** Test Cases ***
A Firewall Of A Hundred Rules
    Given The SUT Filters By A Hundred Rules
    Then A Packet Costs As Much As Before
