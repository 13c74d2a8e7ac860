*** Settings ***
Documentation    A sender sets SO_SNDBUF, which bounds what is under way.
Metadata         Rank    secondary
Metadata         Why    Programs that set SO_SNDBUF bound what is under way. It shows whether the kernel still fills
...              that buffer on a path with delay.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-send-buffers    end-host    closed-loop


*** Test Cases ***
Send Buffers Of A Socket Over 10 ms
    Given The SUT Sends TCP By 1 Streams
    And Its TCP Windows Have 128 KiB
    And Its TCP Buffers Are Of The Socket
    And Its Path Takes    10 ms
    Then It Is As Fast As Before
