*** Settings ***
Documentation    The kernel gives each flow to one of four programs.

Resource         ../../../resources/gate.resource

Test Tags        path-udp-delivery-to-four    end-host


*** Test Cases ***
UDP Delivery To Four Receivers
    Given The SUT Delivers UDP To 4 Receivers
    Then A Packet Costs As Much As Before
