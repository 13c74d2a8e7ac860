*** Settings ***
Documentation    Programs move bytes from the SUT by TCP, and fq sends each segment when TCP asks for it.
Metadata         Rank    secondary
Metadata         Why    Servers pace their TCP by fq. Segments leave by timers, one by one, in place of bursts.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-by-fq    end-host    closed-loop


*** Test Cases ***
TCP From The SUT By fq
    Given The SUT Sends TCP By 1 Streams
    And The SUT Is Set Up With    tc qdisc replace dev $IN root fq
    And Its TCP Windows Have 256 KiB
    Then It Is As Fast As Before
