*** Settings ***
Documentation    A container behind a pair of veths routes each packet back.

Resource         ../../../resources/gate.resource

Test Tags        path-container    leaves-rules


*** Test Cases ***
A Container's Namespace
    Given The SUT Is Set Up With
    ...    ip netns add pdrgate-c$HOP && ip link add gate0 type veth peer gate0 netns pdrgate-c$HOP
    ...    undo: ip netns delete pdrgate-c$HOP
    ...    ip address add 192.0.2.1/24 dev gate0 && ip link set gate0 up
    ...    ip -n pdrgate-c$HOP address add 192.0.2.2/24 dev gate0 && ip -n pdrgate-c$HOP link set gate0 up
    ...    ip netns exec pdrgate-c$HOP sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.gate0.send_redirects=0
    ...    ip netns exec pdrgate-c$HOP sysctl -qw net.ipv4.conf.all.send_redirects=0
    ...    ip -n pdrgate-c$HOP route add default via 192.0.2.1
    ...    ip rule add iif $IN lookup 100 && ip route add default via 192.0.2.2 table 100
    Then A Packet Costs As Much As Before
