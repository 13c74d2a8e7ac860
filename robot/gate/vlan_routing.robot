*** Settings ***
Documentation     How fast does this kernel route IPv4 that comes and goes in a VLAN, and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     Routing Behind A VLAN Keeps Its PDR

Test Tags         vlan


*** Test Cases ***    PINNING    BUFFER    FRAME
IPv4 Behind A VLAN
                      1 cpu      4096      64


*** Keywords ***
The SUT Routes IPv4 Behind A VLAN
    [Documentation]    The kernel's own forwarding between VLAN interfaces of its ports.
    Set Data Path    vlan-ipv4-routing

Routing Behind A VLAN Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${pinning}    ${buffer}    ${frame}
    Given The SUT Routes IPv4 Behind A VLAN
    And Its Interrupts Are Pinned To    ${pinning}
    And Its Receive Buffers Hold ${buffer} Packets
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
