*** Settings ***
Documentation     Does a packet cost as much as it did, on each of these paths? The same guests stay up for all of them.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For Kernel Builds
Suite Teardown    Close Testbed
Test Template     A Packet Costs As Much As Before

Test Tags         portfolio


*** Test Cases ***    WHAT THE SUT DOES                     FRAME    FLOWS
IPv6 Routing
                      The SUT Routes IPv6                   64       256
IPv4 Routing
                      The SUT Routes IPv4                   64       256
IPv6 Routing Of Large Frames
                      The SUT Routes IPv6                   1518     256
IPv4 Routing Of Many Flows
                      The SUT Routes IPv4                   64       16384
IPv4 Behind A VLAN
                      The SUT Routes IPv4 Behind A VLAN     64       256
Ends Of IPv6 Segments
                      The SUT Ends IPv6 Segments            128      256
Redirection By tc
                      The SUT Redirects By TC               64       256
IPv6 Routing By XDP
                      The SUT Routes IPv6 By XDP            64       256
IPv4 Routing By XDP
                      The SUT Routes IPv4 By XDP            64       256
NAT
                      The SUT Translates Addresses          64       256
A Firewall Of A Hundred Rules
                      The SUT Filters By A Hundred Rules    64       256
A VXLAN Tunnel
                      The SUT Tunnels By VXLAN              64       256
A Bridge
                      The SUT Bridges                       64       256
Routing Without GRO
                      The SUT Routes IPv6 Without GRO       64       256
Queueing By fq_codel
                      The SUT Queues By FQ CoDel            64       256
UDP Delivery
    [Tags]    end-host
                      The SUT Delivers UDP To One           64       256
UDP Delivery To Four Receivers
    [Tags]    end-host
                      The SUT Delivers UDP To Four          64       256


*** Keywords ***
The SUT Routes IPv4 Behind A VLAN
    [Documentation]    The kernel's own forwarding between VLAN interfaces of its ports.
    Set Data Path    vlan-ipv4-routing

The SUT Routes IPv6 Without GRO
    [Documentation]    Each packet by itself.
    Set Data Path    ipv6-routing
    GRO Is Off

The SUT Delivers UDP To One
    [Documentation]    A program reads a socket.
    The SUT Delivers UDP To 1 Receivers

The SUT Delivers UDP To Four
    [Documentation]    The kernel gives each flow to one of four programs.
    The SUT Delivers UDP To 4 Receivers

A Packet Costs As Much As Before
    [Documentation]    One path on the guests that are up: set up, counted, taken away.
    [Arguments]    ${path}    ${frame}    ${flows}
    Given Run Keyword    ${path}
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold 4096 Packets
    And The Frames Have ${frame} Bytes
    And Set Flows    ${flows}
    When Both Builds Are Counted While They Stay Up
    Then The Measurement Is Stable
    And The Cost Has Not Regressed
