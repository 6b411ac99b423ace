# One TCP flow over one link that loses the packets it is told to lose; prints what the sender did.
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

# The name of the agent and of the sink.
proc agents {algorithm delack} {
    set agent [dict get {tahoe Agent/TCP reno Agent/TCP/Reno newreno Agent/TCP/Newreno sack Agent/TCP/Sack1} $algorithm]
    set sink Agent/TCPSink
    if {$algorithm eq "sack"} { append sink /Sack1 }
    if {$delack} { append sink /DelAck }
    return [list $agent $sink]
}

proc run {name profile algorithm delack window packets stop drops} {
    preset $profile
    set ns [new Simulator]
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $to 2Mb 30ms DropTail
    $ns queue-limit $from $to 10000
    $ns queue-limit $to $from 10000
    set loss [new ErrorModel/List]
    if {$drops ne "-"} { $loss droplist [split $drops ,] }
    $loss drop-target [new Agent/Null]
    $ns lossmodel $loss $from $to

    lassign [agents $algorithm $delack] agent sink
    set tcp [new $agent]
    set end [new $sink]
    $tcp set window_ $window
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
        for {set n 0} {$n * $every < $stop} {incr n} { $ns at [expr {$n * $every}] "$ftp producemore $burst" }
    } elseif {$packets > 0} {
        $ns at 0.0 "$ftp produce $packets"
    } else {
        $ns at 0.0 "$ftp start"
    }
    # A little later, so that nothing else is due at the time of the end.
    $ns at [expr {$stop + 0.00005}] "$ns halt"
    $ns run
    $ns flush-trace
    close $packets_out
    close $variables_out
    report $name /tmp/forced-loss.[pid].q /tmp/forced-loss.[pid].v
}

# One event a line, from the files that ns-2 wrote.
proc report {name packets_file variables_file} {
    set in [open $packets_file]
    while {[gets $in line] >= 0} {
        if {[lindex $line 0] eq "+"} { puts "$name [lindex $line 1] send [lindex $line 10]" }
    }
    close $in
    set in [open $variables_file]
    while {[gets $in line] >= 0} {
        puts "$name [lindex $line 0] [string trimright [lindex $line 5] _] [lindex $line 6]"
    }
    close $in
    file delete $packets_file $variables_file
}

run {*}[lrange $argv 0 7]
