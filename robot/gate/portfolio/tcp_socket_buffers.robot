*** Settings ***
Documentation    A receiver sets SO_RCVBUF, which bounds its window.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-socket-buffers    end-host    closed-loop


*** Test Cases ***
Receive Buffers Of A Socket Over 10 ms
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 128 KiB
    And Its TCP Buffers Are Of The Socket
    And Its Path Takes    10 ms
    Then TCP Grows As Before
