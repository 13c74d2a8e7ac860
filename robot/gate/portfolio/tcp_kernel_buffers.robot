*** Settings ***
Documentation    The kernel makes its receive buffer larger as bytes come, over a long path.
Metadata         Rank    secondary
Metadata         Why    Most programs leave the receive buffer to the kernel. It shows whether the buffer still grows to
...              what a long path needs.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-kernel-buffers    end-host    closed-loop


*** Test Cases ***
Receive Buffers Of The Kernel Over 50 ms
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Buffers Are Of The Kernel
    # cubic leaves slow start where a busy machine delays what it sends
    And Its TCP Senders Use reno    # robocop: off=NAME18
    And Its Path Takes    50 ms
    Then It Is As Fast As Before
