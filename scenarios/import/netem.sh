#!/bin/sh
# A long path: what the machine sends crosses 10 Mb/s and 40 ms, what it receives 50 Mb/s with losses in bursts.
DEV=eth0

modprobe ifb
ip link set ifb0 up
tc qdisc add dev $DEV ingress
tc filter add dev $DEV parent ffff: matchall action mirred egress redirect dev ifb0

sudo tc qdisc add dev $DEV root handle 1: netem delay 40ms 5ms 25% distribution normal \
    loss 0.3% duplicate 0.1%
sudo tc qdisc add dev $DEV parent 1: handle 10: tbf rate 10mbit burst 16kb latency 100ms
sudo tc qdisc add dev ifb0 root netem rate 50mbit delay 40ms loss gemodel 0.1% 20% limit 500
