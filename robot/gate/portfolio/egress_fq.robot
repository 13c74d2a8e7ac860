*** Settings ***
Documentation    Packets leave by fq.

Resource         ../../../resources/gate.resource

Test Tags        path-egress-fq


*** Test Cases ***
Queueing By fq
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root fq
    Then A Packet Costs As Much As Before
