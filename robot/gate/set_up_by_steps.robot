*** Settings ***
Documentation     How fast are paths that a scenario's own steps set up, and are they as fast as they were?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     This Path Keeps Its PDR


*** Test Cases ***    WHAT THE SUT DOES
NAT
    [Tags]    nat
                      The SUT Translates Addresses
A Firewall
    [Tags]    firewall
                      The SUT Filters By A Hundred Rules
A VXLAN Tunnel
    [Tags]    vxlan
                      The SUT Tunnels By VXLAN
A Bridge
    [Tags]    bridge
                      The SUT Bridges
A Queueing Discipline
    [Tags]    fq-codel
                      The SUT Queues By FQ CoDel


*** Keywords ***
This Path Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${path}
    Given Run Keyword    ${path}
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold 4096 Packets
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
