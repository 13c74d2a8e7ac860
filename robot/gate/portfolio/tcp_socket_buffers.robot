*** Settings ***
Documentation    A receiver sets SO_RCVBUF, which bounds its window.
Metadata         Rank    secondary
Metadata         Why    Programs that set SO_RCVBUF bound the window. It shows whether the advertised window is still
...              what the buffer allows.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-socket-buffers    end-host    closed-loop


*** Test Cases ***
Receive Buffers Of A Socket Over 10 ms
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 128 KiB
    And Its TCP Buffers Are Of The Socket
    And Its Path Takes    10 ms
    Then It Is As Fast As Before
