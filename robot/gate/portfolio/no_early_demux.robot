*** Settings ***
Documentation    The kernel does not look for a socket before it looks for the route.
Metadata         Rank    secondary
Metadata         Why    Routers are advised to turn early demux off. It shows the forwarding path without the lookup of
...              a socket that end hosts pay for.
Metadata         Fault    sysctl -qw net.ipv4.ip_early_demux=1
Metadata         Seen In    udp_v4_early_demux

Resource         ../../../resources/gate.resource

Test Tags        path-no-early-demux


*** Test Cases ***
IPv4 Routing Without Early Demux
    Given The SUT Is Set Up With
    ...    sysctl -n net.ipv4.ip_early_demux >before && sysctl -qw net.ipv4.ip_early_demux=0
    ...    undo: sysctl -qw net.ipv4.ip_early_demux=$(cat before)
    Then It Is As Fast As Before
