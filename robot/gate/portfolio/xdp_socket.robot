*** Settings ***
Documentation    A program takes packets from an AF_XDP socket and sends them on by another; the kernel copies them.
Metadata         Rank    secondary
Metadata         Why    Switches and brokers in user space take packets by AF_XDP. It exercises the rings that the
...              kernel shares with a program, in copy mode.
Metadata         Fault    sysctl -qw kernel.bpf_stats_enabled=1
...              undo: sysctl -qw kernel.bpf_stats_enabled=0
Metadata         Seen In    sched_clock$

Resource         ../../../resources/gate.resource

Test Tags        path-xdp-socket    end-host


*** Test Cases ***
An AF_XDP Socket
    Given The SUT Is Set Up With Nothing But
    ...    ip link set $OUT up && ip link set $IN up
    ...    pdrgate-relay from xdp $IN to xdp $OUT $OUT_PEER_MAC
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=256
    Then It Is As Fast As Before
