*** Settings ***
Documentation    Programs move bytes from the SUT by TCP, as fast as it goes.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-from-the-sut    end-host    closed-loop


*** Test Cases ***
TCP From The SUT
    Given The SUT Sends TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    Then A Byte Costs As Much As Before
