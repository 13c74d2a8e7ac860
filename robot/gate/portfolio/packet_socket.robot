*** Settings ***
Documentation    A program takes whole packets from a packet socket, one by one, and sends them on by another.
Metadata         Rank    secondary
Metadata         Why    Tools such as DHCP servers read whole packets one by one. Each packet costs a system call in and
...              another out.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-packet-socket    end-host


*** Test Cases ***
A Packet Socket
    Given The SUT Is Set Up With Nothing But
    ...    ip link set $OUT up && ip link set $IN up
    ...    pdrgate-relay from packet $IN to packet $OUT $OUT_PEER_MAC
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=256
    Then It Is As Fast As Before
