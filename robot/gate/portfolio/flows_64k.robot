*** Settings ***
Documentation    Each packet is of another flow than those before it.
Metadata         Rank    primary
Metadata         Why    A router on the Internet sees many flows at a time, and hardly two packets of one in a row.
...              Caches and batches that a few flows fill are of no use here.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-flows-64k


*** Test Cases ***
Sixty-Four Thousand Flows
    Given The SUT Routes IPv4
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=65536
    Then It Is As Fast As Before
