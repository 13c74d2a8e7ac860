*** Settings ***
Documentation    A program reads a socket.

Resource         ../../../resources/gate.resource

Test Tags        path-udp-delivery    end-host


*** Test Cases ***
UDP Delivery
    Given The SUT Delivers UDP To 1 Receivers
    Then A Packet Costs As Much As Before
