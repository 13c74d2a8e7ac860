*** Settings ***
Documentation     How fast is this eBPF program, and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For One EBPF Program
Suite Teardown    Close Testbed
Test Template     This Program Keeps Its PDR


*** Test Cases ***    DATA PATH
One Program For XDP
    [Tags]    bpf-program-xdp
                      The SUT Routes IPv6 By XDP
One Program For tc
    [Tags]    bpf-program-tc
                      The SUT Redirects By TC
One Program And What It Lets Pass
    [Tags]    bpf-program-beneath
                      The SUT Carries Packets By    ${BENEATH}


*** Keywords ***
This Program Keeps Its PDR
    [Documentation]    One scenario: the program loaded, measured, judged.
    [Arguments]    @{data_path}
    Given Run Keyword    @{data_path}
    And The SUT Runs The Program Of The Run
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold 4096 Packets
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
