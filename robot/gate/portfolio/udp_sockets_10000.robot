*** Settings ***
Documentation    A program has ten thousand sockets, of a port each, and sends on what any of them gets.

Resource         ../../../resources/gate.resource

Test Tags        path-udp-sockets-10000    end-host


*** Test Cases ***
Ten Thousand UDP Sockets
    Given The SUT Is Set Up With
    ...    ip address add 198.18.0.1/32 dev lo
    ...    pdrgate-relay from udp 198.18.0.1 10000 sockets 10000 to udp 198.18.0.2 53
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=10000-19999 sport=53 src=198.19.0.1 flows=10000
    Then A Packet Costs As Much As Before
