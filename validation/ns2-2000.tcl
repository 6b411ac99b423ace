# TCP and RED of ns-2 around the year 2000, as far as variables of ns-2 2.35 can bring them back.
#
# Papers of 2000 to 2002 ran with the defaults of their day. Each of these variables was introduced, or changed its
# default, later; the date is when. What remains is the code of 2.35 with the settings of 2000, not the code of 2000.

proc tcp_of_2000 {} {
    Agent/TCP set useHeaders_ false              ;# 2001-11: 40 bytes are added to the data; before, packetSize_ is the wire size
    Agent/TCP set windowInit_ 1                  ;# 2001-05: 2
    Agent/TCP set syn_ false                     ;# 2001-05: a SYN is sent
    Agent/TCP set delay_growth_ false            ;# with syn_
    Agent/TCP set singledup_ 0                   ;# 2001-11: limited transmit (RFC 3042)
    Agent/TCP set tcpTick_ 0.1                   ;# 2002-03: 0.01
    Agent/TCP set rfc2988_ false                 ;# 2002-03
    Agent/TCP set minrto_ 0                      ;# 2001-05: 1 s, 2004-10: 0.2 s; without it two ticks are the least
    Agent/TCP set maxrto_ 64
    Agent/TCP set timerfix_ false                ;# 2001-05
    Agent/TCP set rtxcur_init_ 6.0               ;# 2006-01: 3 s
    Agent/TCP set precisionReduce_ false         ;# 2006-01: the halved window keeps its fraction
    Agent/TCP set updated_rttvar_ false          ;# 2006-01
    Agent/TCP set exitFastRetrans_ false
    Agent/TCP set SetCWRonRetransmit_ false
    Agent/TCPSink set SYN_immediate_ack_ false
    Agent/TCPSink set RFC2581_immediate_ack_ false
    Agent/TCPSink set ts_echo_bugfix_ false
}

# RED in packets with explicit thresholds. 2.35 would count bytes and choose the thresholds and the weight itself.
proc red_of_2000 {red min_th max_th max_p gentle wait packet} {
    $red set bytes_ false
    $red set queue_in_bytes_ false
    $red set thresh_ $min_th
    $red set maxthresh_ $max_th
    $red set linterm_ [expr 1.0 / $max_p]
    $red set q_weight_ 0.002
    $red set gentle_ $gentle
    $red set wait_ $wait
    $red set use_mark_p_ false                   ;# with it, drops at an average above max_th count as early ones
    $red set mean_pktsize_ $packet               ;# only for how many packets an idle link could have sent
    $red set idle_pktsize_ $packet
}
