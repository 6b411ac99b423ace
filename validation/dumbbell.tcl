# One bottleneck, a source and a sink host per flow, in ns-2.
#
#   ns dumbbell.tcl KEY VALUE ...        keys and defaults: the table below
#
# Prints, for every flow, `flow NUMBER MBPS` (wire bytes that reached the sink host, from measure_from on),
# then `link UTILISATION EARLY FORCED` (drops per second, early only for RED). With `trace 1` also every event of the
# bottleneck queue (`+` offered, `-` sent, `d` dropped) and every value of RED's average (`a TIME VALUE`).

source [file join [file dirname [info script]] ns2-2000.tcl]

set defaults {
    seed 1
    stop 200
    measure_from 0
    flows {reno}
    rate 1.1Mb
    delay 10ms
    access_rate 10Mb
    access_ms 2.5
    profile 2000
    packet 500
    window 20
    start_within 1.0
    queue red
    limit 110
    min_th 5
    max_th 55
    max_p 0.2
    gentle false
    wait true
    loss 0
    trace 0
}
# flows: a list of `reno`, `cbr:RATE` (gaps vary by up to half) and `poisson:RATE`, e.g. {reno cbr:2Mb}.
# access_ms: one-way delay of each access link of flow $i in ms, an expression.
# loss: probability that a packet is lost on its way into the bottleneck.
# profile: 2000, or 235 for the defaults of ns-2 2.35 but for headers: `packet` is the wire size in both.
# limit: packets waiting (the one in transmission not counted); bytes for drr.

foreach key [dict keys $argv] {
    if {![dict exists $defaults $key]} { puts stderr "dumbbell.tcl: unknown key $key"; exit 2 }
}
set options [dict merge $defaults $argv]
proc opt {key} { dict get $::options $key }

proc bottleneck_queue {queue} {
    switch [opt queue] {
        red {
            red_of_2000 $queue [opt min_th] [opt max_th] [opt max_p] [opt gentle] [opt wait] [opt packet]
            $queue set limit_ [opt limit]
        }
        droptail {
            # DropTail refuses when the queue with the arrival would reach the limit: it holds limit_ - 1.
            $queue set limit_ [expr [opt limit] + 1]
        }
        drr {
            # Flows are distinguished by a hash of the source address; 1009 buckets for a handful of hosts.
            $queue set buckets_ 1009
            $queue set blimit_ [opt limit]
            $queue set quantum_ [opt packet]
            $queue set limit_ 100000
        }
    }
}

proc attach_reno {from to i at} {
    set tcp [new Agent/TCP/Reno]
    $tcp set window_ [opt window]
    $tcp set packetSize_ [opt packet]
    set sink [new Agent/TCPSink]
    connect $from $to $tcp $sink $i
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $::ns at $at "$ftp start"
}

proc attach_udp {from to i} {
    set udp [new Agent/UDP]
    $udp set packetSize_ [opt packet]
    connect $from $to $udp [new Agent/Null] $i
    return $udp
}

proc attach_cbr {from to i at rate} {
    set cbr [new Application/Traffic/CBR]
    $cbr attach-agent [attach_udp $from $to $i]
    $cbr set packetSize_ [opt packet]
    $cbr set rate_ $rate
    $cbr set random_ 1
    $::ns at $at "$cbr start"
}

proc attach_poisson {from to i at rate} {
    set gap [new RandomVariable/Exponential]
    $gap set avg_ [expr [opt packet] * 8.0 / [bits $rate]]
    $gap use-rng [stream]
    $::ns at $at "arrive [attach_udp $from $to $i] $gap"
}

proc arrive {udp gap} {
    $udp send [opt packet]
    $::ns at [expr [$::ns now] + [$gap value]] "arrive $udp $gap"
}

proc connect {from to source sink i} {
    $source set fid_ $i
    $::ns attach-agent $from $source
    $::ns attach-agent $to $sink
    $::ns connect $source $sink
}

proc bits {rate} { expr [string map {Mb e6 kb e3} $rate] }

# A random stream of its own, seeded like the rest.
proc stream {} { new RNG }

$defaultRNG seed [opt seed]
set starts [stream]
if {[opt profile] eq "2000"} { tcp_of_2000 } else { Agent/TCP set useHeaders_ false }

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
set class [dict get {red RED droptail DropTail drr DRR} [opt queue]]
$ns simplex-link $left $right [opt rate] [opt delay] $class
$ns simplex-link $right $left [opt rate] [opt delay] DropTail
$ns queue-limit $right $left 1000
set link [$ns link $left $right]
bottleneck_queue [$link queue]
if {[opt loss] > 0} {
    set errors [new ErrorModel]
    $errors set rate_ [opt loss]
    $errors unit pkt
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns lossmodel $errors $left $right
}

if {[opt trace]} {
    $ns trace-queue $left $right stdout
    if {[opt queue] eq "red"} {
        [$link queue] trace ave_
        [$link queue] attach stdout
    }
}
# A monitor that also counts RED's early drops: ns-2 counts them as ordinary ones otherwise.
set monitor [$ns makeflowmon Fid]
$ns attach-fmon $link $monitor [expr {[opt queue] eq "red"}]

set i 0
foreach flow [opt flows] {
    incr i
    set ms [expr [opt access_ms]]
    set from [$ns node]
    set to [$ns node]
    foreach {a b} [list $from $left $right $to] {
        $ns duplex-link $a $b [opt access_rate] ${ms}ms DropTail
        $ns queue-limit $a $b 1000
        $ns queue-limit $b $a 1000
    }
    set delivered($i) [$ns monitor-queue $right $to ""]
    set at [$starts uniform 0.0 [opt start_within]]
    lassign [split $flow :] kind rate
    switch $kind {
        reno { attach_reno $from $to $i $at }
        cbr { attach_cbr $from $to $i $at $rate }
        poisson { attach_poisson $from $to $i $at $rate }
        default { puts stderr "dumbbell.tcl: unknown flow $flow"; exit 2 }
    }
}

# Counters since the start; what is printed is the difference between measure_from and the end.
proc counters {} {
    set counters [dict create sent [$::monitor set bdepartures_] early [$::monitor set epdrops_]]
    dict set counters drops [$::monitor set pdrops_]
    foreach i [array names ::delivered] { dict set counters $i [$::delivered($i) set bdepartures_] }
    return $counters
}

$ns at [opt measure_from] {set before [counters]}
$ns at [opt stop] {$ns halt}
$ns run
$ns flush-trace

set after [counters]
set span [expr double([opt stop] - [opt measure_from])]
proc per_second {key} { expr ([dict get $::after $key] - [dict get $::before $key]) / $::span }
for {set i 1} {$i <= [array size delivered]} {incr i} {
    puts [format "flow %d %.6f" $i [expr [per_second $i] * 8e-6]]
}
puts [format "link %.6f %.4f %.4f" \
    [expr [per_second sent] * 8 / [bits [opt rate]]] \
    [per_second early] [expr [per_second drops] - [per_second early]]]
