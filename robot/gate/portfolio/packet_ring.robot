*** Settings ***
Documentation    A program takes whole packets from a ring of a packet socket (TPACKET_V3), and sends them on.
Metadata         Rank    secondary
Metadata         Why    Capture tools and intrusion detection read packets from a shared ring. Packets are copied into
...              blocks and the program is woken for each block.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-packet-ring    end-host


*** Test Cases ***
A Ring Of A Packet Socket
    Given The SUT Is Set Up With Nothing But
    ...    ip link set $OUT up && ip link set $IN up
    ...    pdrgate-relay from ring $IN to packet $OUT $OUT_PEER_MAC
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=256
    Then It Is As Fast As Before
