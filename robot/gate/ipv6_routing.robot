*** Settings ***
Documentation       How fast does this kernel route IPv6, can that number be trusted, and is it as fast as it was?
Resource            ../../resources/gate.resource
Suite Setup         Open Testbed    ${TESTBED}    ${PROFILE}    ${BASELINE}    ${READING}
Suite Teardown      Close Testbed
Test Template       IPv6 Routing Keeps Its PDR
Test Tags           ipv6


*** Test Cases ***                  PINNING     BUFFER      FRAME
One CPU, Large Buffers              1 cpu       4096        64
    [Tags]    default    large-buffers
One CPU, Small Buffers              1 cpu       512         64
    [Tags]    small-buffers
One CPU, Large Buffers, Full Frames
    [Tags]    frame-sizes
    1 cpu    4096    1518
Unpinned, Large Buffers             unpinned    4096        64
    [Tags]    unpinned


*** Keywords ***
IPv6 Routing Keeps Its PDR
    [Arguments]    ${pinning}    ${buffer}    ${frame}
    Given The SUT Routes IPv6
    And Its Interrupts Are Pinned To    ${pinning}
    And Its Receive Buffers Hold ${buffer} Packets
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed    tolerance=${TOLERANCE}
