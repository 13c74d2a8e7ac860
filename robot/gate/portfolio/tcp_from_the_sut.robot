*** Settings ***
Documentation    Programs move bytes from the SUT by TCP, as fast as it goes.
Metadata         Rank    primary
Metadata         Why    File and web servers send bytes. It is the sending half of TCP: segmentation, acknowledgements
...              that come in, and the window.

Resource         ../../../resources/gate.resource

Test Tags        closed-loop    tcp


*** Test Cases ***
TCP From The SUT
    [Tags]    path-tcp-from-the-sut    end-host
    Given The SUT Sends TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    Then It Is As Fast As Before

One Stream That The SUT Sends
    [Tags]    tcp-from-the-sut-one-stream-that-the-sut-sends    -portfolio
    Given The SUT Sends TCP By 1 Streams
    Then It Is As Fast As Before

One Stream By Reno
    [Tags]    tcp-from-the-sut-one-stream-by-reno    -portfolio
    Given The SUT Sends TCP By 1 Streams
    And Its TCP Senders Use reno    # robocop: off=NAME18
    Then It Is As Fast As Before
