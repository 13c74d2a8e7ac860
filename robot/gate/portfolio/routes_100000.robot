*** Settings ***
Documentation    The kernel finds each packet's route among a hundred thousand, some of which are nested.

Resource         ../../../resources/gate.resource

Test Tags        path-routes-100000


*** Test Cases ***
A Hundred Thousand Routes
    Given The SUT Is Set Up With
    ...    pdrgate-routes add 100000 $OUT $OUT_PEER_IP4
    ...    undo: pdrgate-routes delete 100000 $OUT $OUT_PEER_IP4
    And Packets Are Sent Like    udp dst=10.0.0.0/9 dport=53 src=@in flows=16384
    Then A Packet Costs As Much As Before
