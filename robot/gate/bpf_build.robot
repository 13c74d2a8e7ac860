*** Settings ***
Documentation     Does this eBPF program forward as fast as that one? Both are loaded in turn, several times.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For EBPF Programs
Suite Teardown    Close Testbed
Test Template     This Program Forwards As Fast As The Other


*** Test Cases ***    DATA PATH
Routing By XDP
    [Tags]    bpf-build-xdp
                      The SUT Routes IPv6 By XDP
IPv4 Routing By XDP
    [Tags]    ipv4    all-bpf-builds
                      The SUT Routes IPv4 By XDP
Redirection By tc
    [Tags]    bpf-build-tc
                      The SUT Redirects By TC
What A Program Lets Pass
    [Tags]    bpf-build-beneath
                      The SUT Carries Packets By    ${BENEATH}


*** Keywords ***
This Program Forwards As Fast As The Other
    [Documentation]    One scenario: both programs loaded, measured, judged.
    [Arguments]    @{data_path}
    Given Run Keyword    @{data_path}
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold 4096 Packets
    When Both Programs Are Loaded In Turn
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
