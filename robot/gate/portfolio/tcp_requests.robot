*** Settings ***
Documentation    A program answers small requests on an open connection, one after the other.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-requests    end-host    closed-loop


*** Test Cases ***
Small TCP Requests
    Given The SUT Answers TCP Requests Of 64 Bytes
    Then A Request Costs As Much As Before
