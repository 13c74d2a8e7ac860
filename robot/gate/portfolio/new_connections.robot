*** Settings ***
Documentation    Each packet begins a connection that is tracked: the one before has expired at once.

Resource         ../../../resources/gate.resource

Test Tags        path-new-connections


*** Test Cases ***
New Connections Tracked
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate passing { type filter hook forward priority filter; }'
    ...    nft add rule ip gate passing ct state invalid drop
    ...    cd /proc/sys/net/netfilter && cat nf_conntrack_udp_timeout >$OLDPWD/was && echo 0 >nf_conntrack_udp_timeout
    ...    undo: cat was >/proc/sys/net/netfilter/nf_conntrack_udp_timeout
    Then A Packet Costs As Much As Before
