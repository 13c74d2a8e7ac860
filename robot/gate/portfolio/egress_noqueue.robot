*** Settings ***
Documentation    Packets leave by noqueue.

Resource         ../../../resources/gate.resource

Test Tags        path-egress-noqueue


*** Test Cases ***
Queueing By noqueue
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root noqueue
    Then A Packet Costs As Much As Before
