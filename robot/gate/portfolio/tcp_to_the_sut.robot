*** Settings ***
Documentation    Programs move bytes to the SUT by TCP, as fast as it goes.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-to-the-sut    end-host    closed-loop


*** Test Cases ***
TCP To The SUT
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    Then A Byte Costs As Much As Before
