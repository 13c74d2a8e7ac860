*** Settings ***
Documentation    Packets leave by pfifo_fast.

Resource         ../../../resources/gate.resource

Test Tags        path-egress-pfifo-fast


*** Test Cases ***
Queueing By pfifo_fast
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root pfifo_fast
    Then A Packet Costs As Much As Before
