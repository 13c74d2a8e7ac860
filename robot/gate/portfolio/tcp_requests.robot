*** Settings ***
Documentation    A program answers small requests on an open connection, one after the other.
Metadata         Rank    primary
Metadata         Why    Databases and services answer small requests on open connections. Each request costs a wake-up
...              and a round trip, in place of bulk work.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-requests    end-host    closed-loop


*** Test Cases ***
Small TCP Requests
    Given The SUT Answers TCP Requests Of 64 Bytes
    Then It Is As Fast As Before
