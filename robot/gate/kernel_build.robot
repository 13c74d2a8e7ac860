*** Settings ***
Documentation     Does this kernel build route as fast as that one? Both are booted in turn, several times.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For Kernel Builds
Suite Teardown    Close Testbed
Test Template     This Build Routes As Fast As The Other

Test Tags         kernel-build


*** Test Cases ***    VERSION     BUFFER
IPv6 Routing
                      6           4096
IPv4 Routing
    [Tags]    ipv4    -kernel-build    all-builds
                      4           4096
UDP
    [Tags]    -kernel-build    udp-build    all-builds
    [Template]    This Build Delivers As Much As The Other
                      1           recvmsg
UDP, Offered Far More Than It Can Take
    [Tags]    -kernel-build    livelock-build
    [Template]    This Build Does Not Livelock Earlier Than The Other
                      1           recvmsg
TCP
    [Tags]    -kernel-build    tcp-build    all-builds
    [Template]    This Build Transfers As Fast As The Other
                      receives    256


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

This Build Transfers As Fast As The Other
    [Documentation]    A closed loop has no PDR: its throughput at a fixed window, round trips, what is sent again.
    [Arguments]    ${direction}    ${window}
    Given The SUT ${direction} TCP By 1 Streams
    And Its TCP Windows Have ${window} KiB
    And Its Interrupts Are Pinned To    1 cpu
    When Both Builds Are Booted In Turn
    Then The Measurement Is Stable
    And TCP Has Not Regressed

This Build Delivers As Much As The Other
    [Documentation]    PDR, cost of a packet, and the least that receivers get past the PDR.
    [Arguments]    ${receivers}    ${call}
    Given The SUT Delivers UDP To ${receivers} Receivers By ${call}
    And Its Interrupts Are Pinned To    1 cpu
    When Both Builds Are Booted In Turn
    Then The Measurement Is Stable
    And The PDR Has Not Regressed

This Build Does Not Livelock Earlier Than The Other
    [Documentation]    The same, and what is delivered far beyond saturation.
    [Arguments]    ${receivers}    ${call}
    Given The SUT Delivers UDP To ${receivers} Receivers By ${call}
    And Its Interrupts Are Pinned To    1 cpu
    And It Is Offered Up To 8 Times What It Can Take
    When Both Builds Are Booted In Turn
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
