*** Settings ***
Documentation     How fast does a tc program redirect packets on this kernel, and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     Redirection By TC Keeps Its PDR

Test Tags         tc


*** Test Cases ***    PINNING    BUFFER    FRAME
One CPU, Large Buffers
                      1 cpu      4096      64


*** Keywords ***
Redirection By TC Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${pinning}    ${buffer}    ${frame}
    Given The SUT Redirects By TC
    And Its Interrupts Are Pinned To    ${pinning}
    And Its Receive Buffers Hold ${buffer} Packets
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
