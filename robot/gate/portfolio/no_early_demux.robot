*** Settings ***
Documentation    The kernel does not look for a socket before it looks for the route.

Resource         ../../../resources/gate.resource

Test Tags        path-no-early-demux


*** Test Cases ***
IPv4 Routing Without Early Demux
    Given The SUT Is Set Up With
    ...    sysctl -n net.ipv4.ip_early_demux >before && sysctl -qw net.ipv4.ip_early_demux=0
    ...    undo: sysctl -qw net.ipv4.ip_early_demux=$(cat before)
    Then A Packet Costs As Much As Before
