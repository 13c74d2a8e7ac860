*** Settings ***
Documentation     How fast does this kernel move bytes by TCP, and what does that do to round trips?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     TCP Keeps Its Throughput

Test Tags         tcp


*** Test Cases ***    DIRECTION    STREAMS    WINDOW    CONGESTION
One Stream
    [Tags]    tcp-one
                      receives     1          1024      cubic
Small Windows
                      receives     1          64        cubic
Large Windows
                      receives     1          4096      cubic
Eight Streams
                      receives     8          1024      cubic
The SUT Sends
                      sends        1          1024      cubic
The SUT Sends By Reno
                      sends        1          1024      reno
The Knee Of The Window Curve
    [Documentation]    Sweeps over windows until two agree, and then the repeats at a fixed one.
    [Tags]    tcp-knee
    [Template]    NONE
    Given The SUT Receives TCP By 1 Streams
    And Its Interrupts Are Pinned To    1 cpu
    When The Window Curve Is Measured
    And Transfers Are Measured
    Then The Measurement Is Stable
    And TCP Has Not Regressed


*** Keywords ***
TCP Keeps Its Throughput
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${direction}    ${streams}    ${window}    ${congestion}
    Given The SUT ${direction} TCP By ${streams} Streams
    And Its TCP Windows Have ${window} KiB
    And Its TCP Senders Use ${congestion}
    And Its Interrupts Are Pinned To    1 cpu
    When Transfers Are Measured
    Then The Measurement Is Stable
    And TCP Has Not Regressed
