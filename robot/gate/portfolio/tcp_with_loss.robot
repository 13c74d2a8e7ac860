*** Settings ***
Documentation    A path of 10 ms loses each thousandth frame, and a sender with a small buffer sends it again.
Metadata         Rank    secondary
Metadata         Why    Long paths lose frames. It is the only path on which a sender recovers and sends again.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-with-loss    end-host    closed-loop


*** Test Cases ***
A Small Send Buffer And Loss Over 10 ms
    Given The SUT Sends TCP By 1 Streams
    And The SUT Is Set Up With
    ...    sysctl -n net.ipv4.tcp_wmem >before && sysctl -qw net.ipv4.tcp_wmem='4096 16384 16384'
    ...    undo: sysctl -qw net.ipv4.tcp_wmem="$(cat before)"
    And Its TCP Buffers Are Of The Kernel
    And Its Path Takes    10 ms
    And Its Path Loses    0.1%
    Then It Is As Fast As Before
