*** Settings ***
Documentation    A program answers small requests, of which each has a connection of its own.
Metadata         Rank    primary
Metadata         Why    Web servers get short connections. It exercises the handshake, sockets that are made and ended,
...              and timers.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-connections    end-host    closed-loop


*** Test Cases ***
Small TCP Requests Of New Connections
    Given The SUT Answers TCP Requests Of 64 Bytes
    And Each Request Has A Connection Of Its Own
    Then It Is As Fast As Before
