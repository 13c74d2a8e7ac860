*** Settings ***
Documentation    Packets leave by CAKE.

Resource         ../../../resources/gate.resource

Test Tags        path-egress-cake


*** Test Cases ***
Queueing By cake
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root cake unlimited
    Then A Packet Costs As Much As Before
