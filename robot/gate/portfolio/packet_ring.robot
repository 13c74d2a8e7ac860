*** Settings ***
Documentation    A program takes whole packets from a ring of a packet socket (TPACKET_V3), and sends them on.

Resource         ../../../resources/gate.resource

Test Tags        path-packet-ring    end-host


*** Test Cases ***
A Ring Of A Packet Socket
    Given The SUT Is Set Up With Nothing But
    ...    ip link set $OUT up && ip link set $IN up
    ...    pdrgate-relay from ring $IN to packet $OUT $OUT_PEER_MAC
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=256
    Then A Packet Costs As Much As Before
