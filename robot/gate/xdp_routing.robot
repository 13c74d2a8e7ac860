*** Settings ***
Documentation     How fast does an XDP program route on this kernel, and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     XDP Routing Keeps Its PDR

Test Tags         xdp


*** Test Cases ***    VERSION    PINNING    BUFFER    FRAME
IPv6, Large Buffers
    [Tags]    xdp-ipv6
                      6          1 cpu      4096      64
IPv4, Large Buffers
    [Tags]    xdp-ipv4
                      4          1 cpu      4096      64


*** Keywords ***
XDP Routing Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${version}    ${pinning}    ${buffer}    ${frame}
    Given The SUT Routes IPv${version} By XDP
    And Its Interrupts Are Pinned To    ${pinning}
    And Its Receive Buffers Hold ${buffer} Packets
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
