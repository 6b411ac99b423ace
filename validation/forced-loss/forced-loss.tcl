# One TCP flow over one link that loses the listed packets; prints what the sender did.
#
#   ns forced-loss.tcl NAME PROFILE ALGORITHM DELACK WINDOW PACKETS STOP DROPS
#
# PACKETS 0 is an endless transfer, 3@0.5 hands over 3 packets every 0.5 s; DROPS is a comma-separated list of ordinals of packets offered to the link
# (the SYN, if the profile has one, is number 0), or `-`.
#
# Output, one event a line: `CASE time EVENT value` with EVENT one of `send` (sequence number, in packets, of a data
# packet offered to the link), `cwnd`, `ssthresh`, `backoff` (variables of the agent whenever they change).

proc preset {profile} {
    if {$profile eq "ns2-235"} { return }
    # Around 2000: variables of ns-2.35 put back to what they were then, dated in ns-2's own default and test files.
    Agent/TCP set syn_ false
    Agent/TCP set delay_growth_ false
    Agent/TCP set windowInit_ 1
    Agent/TCP set useHeaders_ false
    Agent/TCP set singledup_ 0
    Agent/TCP set tcpTick_ 0.1
    Agent/TCP set minrto_ 0
    Agent/TCP set rtxcur_init_ 6.0
    Agent/TCP set rfc2988_ false
    Agent/TCP set timerfix_ false
    Agent/TCP set precisionReduce_ false
    Agent/TCP set updated_rttvar_ false
    Agent/TCP set exitFastRetrans_ false
    Agent/TCP set SetCWRonRetransmit_ false
    Agent/TCP set maxrto_ 64
    Agent/TCPSink set SYN_immediate_ack_ false
    Agent/TCPSink set RFC2581_immediate_ack_ false
    Agent/TCPSink set ts_echo_bugfix_ false
}

# The two ends of a connection: a sender and a sink, or two of the two-way agents of the profile `ns2-full`.
proc ends {profile algorithm delack window} {
    if {$profile eq "ns2-full"} {
        set ends [list [new Agent/TCP/FullTcp] [new Agent/TCP/FullTcp]]
        foreach end $ends {
            $end set window_ $window
            $end set segsize_ 1000
            $end set segsperack_ [expr {$delack ? 2 : 1}]
        }
        [lindex $ends 1] listen
        return $ends
    }
    set agent [dict get {tahoe Agent/TCP reno Agent/TCP/Reno newreno Agent/TCP/Newreno sack Agent/TCP/Sack1} $algorithm]
    set sink Agent/TCPSink
    if {$algorithm eq "sack"} { append sink /Sack1 }
    if {$delack} { append sink /DelAck }
    set tcp [new $agent]
    $tcp set window_ $window
    return [list $tcp [new $sink]]
}

# Ordinals of packets to lose, in ns-2's count. FullTcp answers the SYN of the other end with a packet of its own
# before its data: whatever comes after the SYN that gets through is one later.
proc losses {profile drops} {
    if {$drops eq "-"} { return {} }
    set ordinals [split $drops ,]
    if {$profile ne "ns2-full"} { return $ordinals }
    set syn 0
    while {$syn in $ordinals} { incr syn }
    return [lmap ordinal $ordinals { expr {$ordinal + ($ordinal > $syn)} }]
}

# Hands over so many packets.
proc supply {profile tcp ftp packets} {
    if {$profile eq "ns2-full"} { $tcp advance-bytes [expr {$packets * 1000}] } else { $ftp producemore $packets }
}

proc run {name profile algorithm delack window packets stop drops} {
    preset $profile
    set ns [new Simulator]
    set from [$ns node]
    set to [$ns node]
    # FullTcp's delayed ACKs are due at round times: no packet is to arrive at the same instant, where the order of the
    # two is a matter of rounding.
    set delay [expr {$profile eq "ns2-full" ? "30.0137ms" : "30ms"}]
    $ns duplex-link $from $to 2Mb $delay DropTail
    $ns queue-limit $from $to 10000
    $ns queue-limit $to $from 10000
    set loss [new ErrorModel/List]
    if {$drops ne "-"} { $loss droplist [losses $profile $drops] }
    $loss drop-target [new Agent/Null]
    $ns lossmodel $loss $from $to

    lassign [ends $profile $algorithm $delack $window] tcp end
    $ns attach-agent $from $tcp
    $ns attach-agent $to $end
    $ns connect $tcp $end
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp

    set packets_out [open "/tmp/forced-loss.[pid].q" w]
    set variables_out [open "/tmp/forced-loss.[pid].v" w]
    $ns trace-queue $from $to $packets_out
    foreach variable {cwnd_ ssthresh_ backoff_ dupacks_} { $tcp trace $variable }
    $tcp attach $variables_out
    if {[scan $packets "%d@%f" burst every] == 2} {
        for {set n 0} {$n * $every < $stop} {incr n} { $ns at [expr {$n * $every}] [list supply $profile $tcp $ftp $burst] }
    } elseif {$packets > 0} {
        $ns at 0.0 [list supply $profile $tcp $ftp $packets]
    } else {
        $ns at 0.0 "$ftp start"
    }
    # A little later, so that nothing else is due at the time of the end.
    $ns at [expr {$stop + 0.00005}] "$ns halt"
    $ns run
    $ns flush-trace
    close $packets_out
    close $variables_out
    report $name $profile /tmp/forced-loss.[pid].q /tmp/forced-loss.[pid].v
}

# One event a line, from the files that ns-2 wrote.
proc report {name profile packets_file variables_file} {
    set full [expr {$profile eq "ns2-full"}]
    set in [open $packets_file]
    while {[gets $in line] >= 0} {
        lassign $line event time from to type size flags id source sink number
        if {$event ne "+"} { continue }
        # FullTcp counts bytes, the SYN's among them; its packet without data that ends the handshake is left out.
        if {$full && $number > 0} {
            if {$size == 40} { continue }
            set number [expr {($number - 1) / 1000 + 1}]
        }
        puts "$name $time send $number"
    }
    close $in
    set in [open $variables_file]
    set cwnd 0
    set dupacks 0
    while {[gets $in line] >= 0} {
        set variable [string trimright [lindex $line 5] _]
        set value [lindex $line 6]
        if {$variable eq "dupacks"} { set dupacks $value }
        if {$variable eq "cwnd"} {
            # FullTcp's cwnd contains what duplicate ACKs add to it; the window without that is what is compared.
            if {$full && $dupacks >= 3 && $value > $cwnd} { continue }
            set cwnd $value
        }
        puts "$name [lindex $line 0] $variable $value"
    }
    close $in
    file delete $packets_file $variables_file
}

run {*}[lrange $argv 0 7]
