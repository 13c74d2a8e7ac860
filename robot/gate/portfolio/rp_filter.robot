*** Settings ***
Documentation    The kernel checks that the route back to each source leaves by the port where the packet came in.
Metadata         Rank    secondary
Metadata         Why    Many distributions turn reverse-path filtering on. It adds a second lookup of a route, for the
...              source of each packet.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-rp-filter


*** Test Cases ***
IPv4 Routing With rp_filter
    Given The SUT Is Set Up With
    ...    for way in all $IN; do sysctl -n net.ipv4.conf.$way.rp_filter >$way || exit; done
    ...    for way in all $IN; do sysctl -qw net.ipv4.conf.$way.rp_filter=1 || exit; done
    ...    undo: for way in all $IN; do sysctl -qw net.ipv4.conf.$way.rp_filter=$(cat $way); done
    Then It Is As Fast As Before
