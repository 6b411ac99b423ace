containerlab tools netem set -n clab-wan-r1 -i eth1 --delay 20ms --jitter 2ms --loss 0.5 --rate 20000
containerlab tools netem set -n clab-wan-r2 -i eth1 --delay 35ms
