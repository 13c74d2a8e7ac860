*** Settings ***
Documentation    Packets leave by fq_codel.

Resource         ../../../resources/gate.resource

Test Tags        path-fq-codel


*** Test Cases ***
Queueing By fq_codel
    Given The SUT Queues By FQ CoDel
    Then A Packet Costs As Much As Before
