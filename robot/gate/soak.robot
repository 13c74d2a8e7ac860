*** Settings ***
Documentation     Does this kernel hold 90 % of its PDR for long, without losing a packet? With --soak TIME.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For A Soak
Suite Teardown    Close Testbed
Test Template     Routing Loses Nothing Below Its PDR


*** Test Cases ***    VERSION
IPv6 Routing For Long
    [Tags]    soak
                      6
IPv4 Routing For Long
    [Tags]    soak-ipv4
                      4


*** Keywords ***
Routing Loses Nothing Below Its PDR
    [Documentation]    The load is 90 % of the lower bound that the search found.
    [Arguments]    ${version}
    Given The SUT Routes IPv${version}
    And Its Interrupts Are Pinned To    1 cpu
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    And It Is Soaked For
    Then No Packet Of The Soak Was Lost
