*** Settings ***
Documentation    The kernel checks that the route back to each source leaves by the port where the packet came in.

Resource         ../../../resources/gate.resource

Test Tags        path-rp-filter


*** Test Cases ***
IPv4 Routing With rp_filter
    Given The SUT Is Set Up With
    ...    for way in all $IN; do sysctl -n net.ipv4.conf.$way.rp_filter >$way || exit; done
    ...    for way in all $IN; do sysctl -qw net.ipv4.conf.$way.rp_filter=1 || exit; done
    ...    undo: for way in all $IN; do sysctl -qw net.ipv4.conf.$way.rp_filter=$(cat $way); done
    Then A Packet Costs As Much As Before
