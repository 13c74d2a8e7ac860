*** Settings ***
Documentation    Packets leave more slowly than they come, by htb and fq_codel, which drops.

Resource         ../../../resources/gate.resource

Test Tags        path-slow-egress


*** Test Cases ***
A Slow Egress
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root handle 1: htb default 1
    ...    tc class add dev $OUT parent 1: classid 1:1 htb rate 128kbit
    ...    tc qdisc add dev $OUT parent 1:1 fq_codel limit 128
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=4
    And What Counts Is    handled
    Then A Packet Costs As Much As Before
