*** Settings ***
Documentation     How fast does this kernel route IPv6, can that number be trusted, and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     IPv6 Routing Keeps Its PDR

Test Tags         ipv6


*** Test Cases ***    PINNING     BUFFER    FRAME
One CPU, Large Buffers
    [Tags]    default    large-buffers
                      1 cpu       4096      64
One CPU, Small Buffers
    [Tags]    small-buffers
                      1 cpu       512       64
One CPU, Full-Size Frames
    [Tags]    frame-sizes
                      1 cpu       4096      1518
Unpinned, Large Buffers
    [Tags]    unpinned
                      unpinned    4096      64


*** Keywords ***
IPv6 Routing Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${pinning}    ${buffer}    ${frame}
    Given The SUT Routes IPv6
    And Its Interrupts Are Pinned To    ${pinning}
    And Its Receive Buffers Hold ${buffer} Packets
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
