*** Settings ***
Documentation     What do an end host's packets cost, and when do they come, by how they are batched on receipt?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed

Test Tags         batching


*** Test Cases ***
UDP Without GRO
    [Documentation]    Each packet goes up the stack by itself, and nobody looks for another one of its flow.
    [Tags]    batching-udp
    Given The SUT Delivers UDP To 1 Receivers
    And Its Interrupts Are Pinned To    1 cpu
    And GRO Is Off
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed

UDP By Ports That Wait
    [Documentation]    Polls find more packets, which have waited longer.
    [Tags]    batching-udp    batching-one
    Given The SUT Delivers UDP To 1 Receivers
    And Its Interrupts Are Pinned To    1 cpu
    And Its Ports Wait For Further Packets    1 ms
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed

TCP Without GRO
    [Documentation]    Each segment goes up the stack by itself.
    [Tags]    batching-tcp
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    And Its Interrupts Are Pinned To    1 cpu
    And GRO Is Off
    When Transfers Are Measured
    Then The Measurement Is Stable
    And TCP Has Not Regressed

TCP By Ports That Wait
    [Documentation]    Polls find more segments to put together, and acknowledgements go out later.
    [Tags]    batching-tcp
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    And Its Interrupts Are Pinned To    1 cpu
    And Its Ports Wait For Further Packets    1 ms
    When Transfers Are Measured
    Then The Measurement Is Stable
    And TCP Has Not Regressed
