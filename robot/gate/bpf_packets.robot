*** Settings ***
Documentation     Does this eBPF program do with packets what that one does, and at no higher cost? No ports, no load.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For Packets
Suite Teardown    Close Testbed


*** Test Cases ***
Packets Of A Capture
    [Documentation]    Each packet by itself, with the packet and the maps as they were at first.
    [Tags]    bpf-packets
    Given The SUT Carries Packets By    ip-routing
    When Both Programs Are Run On Packets
    Then Packets Are Answered Alike
