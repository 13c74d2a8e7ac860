*** Settings ***
Documentation     Do packets take as long as they did, at 50, 90 and 99 % of the PDR?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     Routing Keeps Its PDR And Its Latency

Test Tags         latency


*** Test Cases ***    VERSION
IPv6 Routing With Its Latency
    [Tags]    latency-ipv6
                      6
IPv4 Routing With Its Latency
    [Tags]    latency-ipv4
                      4


*** Keywords ***
Routing Keeps Its PDR And Its Latency
    [Documentation]    Latency is judged beside the PDR, by a tolerance of its own.
    [Arguments]    ${version}
    Given The SUT Routes IPv${version}
    And Its Interrupts Are Pinned To    1 cpu
    And Its Latency Is Taken At 50, 90 And 99 Percent Of The PDR
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
