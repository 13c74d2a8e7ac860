*** Settings ***
Documentation    A program reads a socket.
Metadata         Rank    primary
Metadata         Why    DNS, QUIC and telemetry end at a UDP socket. It is the receiving path of an end host up to the
...              system call.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource


*** Test Cases ***
UDP Delivery
    [Tags]    path-udp-delivery    end-host    udp
    Given The SUT Delivers UDP To 1 Receivers
    Then It Is As Fast As Before

Small Socket Buffers
    [Tags]    udp-delivery-small-socket-buffers    udp    -portfolio
    Given The SUT Delivers UDP To 1 Receivers
    And Its Socket Buffers Hold 1 MB
    Then It Is As Fast As Before

Large Socket Buffers
    [Tags]    udp-delivery-large-socket-buffers    udp    -portfolio
    Given The SUT Delivers UDP To 1 Receivers
    And Its Socket Buffers Hold 4 MB
    Then It Is As Fast As Before

All Packets In One Call
    [Tags]    udp-delivery-all-packets-in-one-call    udp    -portfolio
    Given The SUT Delivers UDP To 1 Receivers By recvmmsg    # robocop: off=NAME18
    Then It Is As Fast As Before

Full-Size Frames
    [Tags]    udp-delivery-full-size-frames    udp    -portfolio
    Given The SUT Delivers UDP To 1 Receivers
    And The Frames Have 1518 Bytes
    Then It Is As Fast As Before

Balanced Interrupts
    [Tags]    udp-delivery-balanced-interrupts    udp    -portfolio
    Given The SUT Delivers UDP To 1 Receivers
    And Its Interrupts Are Pinned To    unpinned
    Then It Is As Fast As Before

UDP Without GRO
    [Documentation]    Each packet goes up the stack by itself, and nobody looks for another one of its flow.
    [Tags]    udp-delivery-udp-without-gro    batching    -portfolio
    Given The SUT Delivers UDP To 1 Receivers
    And GRO Is Off
    Then It Is As Fast As Before

UDP By Ports That Wait
    [Documentation]    Polls find more packets, which have waited longer.
    [Tags]    udp-delivery-udp-by-ports-that-wait    batching    -portfolio
    Given The SUT Delivers UDP To 1 Receivers
    And Its Ports Wait For Further Packets    1 ms
    Then It Is As Fast As Before
