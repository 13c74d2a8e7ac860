*** Settings ***
Documentation    A program answers small requests, of which each has a connection of its own.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-connections    end-host    closed-loop


*** Test Cases ***
Small TCP Requests Of New Connections
    Given The SUT Answers TCP Requests Of 64 Bytes
    And Each Request Has A Connection Of Its Own
    Then A Request Costs As Much As Before
