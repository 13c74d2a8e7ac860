*** Settings ***
Documentation     How fast does this kernel end IPv6 segments (SRv6), and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     SRv6 End Keeps Its PDR

Test Tags         srv6


*** Test Cases ***    PINNING    BUFFER    FRAME
One CPU, Large Buffers
                      1 cpu      4096      256


*** Keywords ***
SRv6 End Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged. A routing header through eight hops fits into 256 bytes.
    [Arguments]    ${pinning}    ${buffer}    ${frame}
    Given The SUT Ends IPv6 Segments
    And Its Interrupts Are Pinned To    ${pinning}
    And Its Receive Buffers Hold ${buffer} Packets
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
