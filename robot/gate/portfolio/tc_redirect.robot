*** Settings ***
Documentation    A tc program at ingress sends packets out of the other port.
Metadata         Rank    primary
Metadata         Why    eBPF networks of containers redirect packets by a tc program. It is the hook of tc with a
...              program, and no routing below it.
Metadata         Fault    tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-tc-redirect    tc


*** Test Cases ***
Redirection By tc
    Given The SUT Redirects By TC
    Then It Is As Fast As Before
