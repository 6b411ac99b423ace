# The two speed workloads in ns-2.
#
#   ns workload.tcl one|many FLOWS LIMIT count|time
#
# one   FLOWS Reno flows, a pair of hosts each, 4.65 Mb/s, RED 5/55/0.2 of LIMIT packets, 1000 B, RTT 26 ms, 200 s
# many  FLOWS Reno flows over 100 pairs of hosts, 1 Gb/s, FIFO of LIMIT packets, 1500 B, RTT 20 ms, 10 s
#
# time: prints `cpu_seconds S peak_bytes M packets N`, S being the processor time of the event loop alone (not of the set-up) and N
# the data packets that all senders sent, and traces and monitors nothing.
# count: prints `packet_hops H packets N` from monitors on every link. H is the number of transmissions of data and ACKs
# on all links, both ways: every packet that leaves a queue is transmitted once. Monitors cost time but change nothing
# else; the same N says that it was the same run.

source [file join [file dirname [info script]] ../../validation/ns2-2000.tcl]

lassign $argv workload flows limit mode
switch $workload {
    one {
        set link {4.65Mb 10ms RED}
        set access {10Mb 1.5ms}
        set shape {pairs $flows packet 1000 window 20 stop 200}
    }
    many {
        set link {1000Mb 8ms DropTail}
        set access {10000Mb 1ms}
        set shape {pairs 100 packet 1500 window 1000 stop 10}
    }
    default { puts stderr "usage: ns workload.tcl one|many FLOWS LIMIT count|time"; exit 2 }
}
foreach {name value} [subst $shape] { set $name $value }

# Processor time of this process in seconds; the first field of schedstat is in nanoseconds.
proc cpu {} {
    set file [open /proc/self/schedstat]
    set nanoseconds [lindex [read $file] 0]
    close $file
    expr $nanoseconds * 1e-9
}

# The most memory this process ever had resident.
proc peak {} {
    set file [open /proc/self/status]
    regexp {VmHWM:\s+(\d+) kB} [read $file] - kilobytes
    close $file
    expr $kilobytes * 1024
}

tcp_of_2000
set ns [new Simulator]
set links {}
proc connect_nodes {a b rate delay class limit} {
    $::ns simplex-link $a $b $rate $delay $class
    $::ns queue-limit $a $b $limit
    lappend ::links [list $a $b]
}

set left [$ns node]
set right [$ns node]
lassign $link rate delay class
connect_nodes $left $right $rate $delay $class $limit
connect_nodes $right $left $rate $delay DropTail 100000
# DropTail refuses an arrival that would reach the limit: it holds one packet less.
if {$class eq "DropTail"} { $ns queue-limit $left $right [expr $limit + 1] }
if {$class eq "RED"} { red_of_2000 [[$ns link $left $right] queue] 5 55 0.2 false true $packet }

for {set i 0} {$i < $pairs} {incr i} {
    set from($i) [$ns node]
    set to($i) [$ns node]
    foreach {a b} [list $from($i) $left $left $from($i) $right $to($i) $to($i) $right] {
        connect_nodes $a $b {*}$access DropTail 100000
    }
}

set starts [new RNG]
set senders {}
for {set i 0} {$i < $flows} {incr i} {
    set tcp [new Agent/TCP/Reno]
    $tcp set window_ $window
    $tcp set packetSize_ $packet
    set sink [new Agent/TCPSink]
    $ns attach-agent $from([expr $i % $pairs]) $tcp
    $ns attach-agent $to([expr $i % $pairs]) $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [$starts uniform 0.0 1.0] "$ftp start"
    lappend senders $tcp
}

set monitors {}
if {$mode eq "count"} {
    foreach ends $links { lappend monitors [$ns monitor-queue {*}$ends ""] }
}

$ns at $stop {$ns halt}
set before [cpu]
$ns run
set used [expr [cpu] - $before]

set packets 0
foreach tcp $senders { incr packets [$tcp set ndatapack_] }
if {$mode eq "count"} {
    set hops 0
    foreach monitor $monitors { incr hops [$monitor set pdepartures_] }
    puts "packet_hops $hops packets $packets"
} else {
    puts "cpu_seconds [format %.4f $used] peak_bytes [peak] packets $packets"
}
