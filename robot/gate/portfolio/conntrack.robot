*** Settings ***
Documentation    Connections are tracked, and none is translated.

Resource         ../../../resources/gate.resource

Test Tags        path-conntrack


*** Test Cases ***
Connection Tracking
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    nft add rule ip gate passing ct state invalid drop
    Then A Packet Costs As Much As Before    several_cpus=True
