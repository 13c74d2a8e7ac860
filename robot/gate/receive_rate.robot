*** Settings ***
Documentation     The maximum receive rate (MRR), for those who come from CSIT: told, and not judged.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     Routing Is Offered All There Is

Test Tags         mrr


*** Test Cases ***    VERSION
IPv6 Routing, Offered All There Is
    [Tags]    mrr-ipv6
                      6
IPv4 Routing, Offered All There Is
    [Tags]    mrr-ipv4
                      4


*** Keywords ***
Routing Is Offered All There Is
    [Documentation]    No search, no verdict: ten trials.
    [Arguments]    ${version}
    Given The SUT Routes IPv${version}
    And Its Interrupts Are Pinned To    1 cpu
    When Its Maximum Receive Rate Is Measured
