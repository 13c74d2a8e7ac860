*** Settings ***
Documentation    Packets leave more slowly than they come, by htb and fq, which keeps each flow's order.
Metadata         Rank    secondary
Metadata         Why    The same uplink with fq, which keeps flows apart in a standing queue. The order of packets
...              within a flow is judged too.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-slow-egress-fq


*** Test Cases ***
A Slow Egress By fq
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root handle 1: htb default 1
    ...    tc class add dev $OUT parent 1: classid 1:1 htb rate 1mbit
    ...    tc qdisc add dev $OUT parent 1:1 fq limit 1024
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=4
    And What Counts Is    handled
    Then It Is As Fast As Before
