*** Settings ***
Documentation    Programs move bytes to the SUT by TCP, as fast as it goes.
Metadata         Rank    primary
Metadata         Why    Storage and backups receive bytes. It is the receiving half of TCP: GRO, sockets, and
...              acknowledgements that go out.

Resource         ../../../resources/gate.resource

Test Tags        closed-loop


*** Test Cases ***
TCP To The SUT
    [Tags]    path-tcp-to-the-sut    end-host    tcp
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    Then It Is As Fast As Before

One Stream
    [Tags]    tcp-to-the-sut-one-stream    tcp    tcp-one    -portfolio
    Given The SUT Receives TCP By 1 Streams
    Then It Is As Fast As Before

Small Windows
    [Tags]    tcp-to-the-sut-small-windows    tcp    -portfolio
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 64 KiB
    Then It Is As Fast As Before

Large Windows
    [Tags]    tcp-to-the-sut-large-windows    tcp    -portfolio
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 4096 KiB
    Then It Is As Fast As Before

Eight Streams
    [Tags]    tcp-to-the-sut-eight-streams    tcp    -portfolio
    Given The SUT Receives TCP By 8 Streams
    Then It Is As Fast As Before

TCP Without GRO
    [Documentation]    Each segment goes up the stack by itself.
    [Tags]    tcp-to-the-sut-tcp-without-gro    batching    -portfolio
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    And GRO Is Off
    Then It Is As Fast As Before

TCP By Ports That Wait
    [Documentation]    Polls find more segments to put together, and acknowledgements go out later.
    [Tags]    tcp-to-the-sut-tcp-by-ports-that-wait    batching    -portfolio
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    And Its Ports Wait For Further Packets    1 ms
    Then It Is As Fast As Before
