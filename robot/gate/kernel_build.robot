*** Settings ***
Documentation     Does this kernel build route as fast as that one? Both are booted in turn, several times.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For Kernel Builds
Suite Teardown    Close Testbed
Test Template     This Build Routes As Fast As The Other

Test Tags         kernel-build


*** Test Cases ***    VERSION    BUFFER
IPv6 Routing
                      6          4096
IPv4 Routing
    [Tags]    ipv4    -kernel-build    all-builds
                      4          4096


*** Keywords ***
This Build Routes As Fast As The Other
    [Documentation]    One scenario: both builds booted, measured, judged.
    [Arguments]    ${version}    ${buffer}
    Given The SUT Routes IPv${version}
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold ${buffer} Packets
    When Both Builds Are Booted In Turn
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
