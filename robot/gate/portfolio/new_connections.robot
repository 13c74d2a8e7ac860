*** Settings ***
Documentation    Each packet begins a connection that is tracked: the one before has expired at once.
Metadata         Rank    primary
Metadata         Why    Scans, DNS and short requests make a connection for nearly each packet. Making and ending an
...              entry costs more than finding one.
Metadata         Fault    nft add rule ip gate passing ct mark 7 drop
Metadata         Seen In    nft_ct_get

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
    Then It Is As Fast As Before
