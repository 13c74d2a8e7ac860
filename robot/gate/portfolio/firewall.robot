*** Settings ***
Documentation    A hundred rules of nftables that match nothing stand one after the other.

Resource         ../../../resources/gate.resource

Test Tags        path-firewall


*** Test Cases ***
A Firewall Of A Hundred Rules
    Given The SUT Filters By A Hundred Rules
    Then A Packet Costs As Much As Before
