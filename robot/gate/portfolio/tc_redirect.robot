*** Settings ***
Documentation    A tc program at ingress sends packets out of the other port.

Resource         ../../../resources/gate.resource

Test Tags        path-tc-redirect


*** Test Cases ***
Redirection By tc
    Given The SUT Redirects By TC
    Then A Packet Costs As Much As Before
