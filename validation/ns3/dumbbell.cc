// One bottleneck in ns-3 with a discipline of Apportion in front of it. TCP flows come first, then one CBR flow over UDP if its rate is
// not zero; each has a pair of hosts. Prints a line per flow: `flow`, its number, Mb/s of packets received after --from, headers included.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <vector>

using namespace ns3;

static std::string queue = "fifo";
static std::vector<uint64_t> received;
static Time from;

static bool
SetQueue(const std::string& text)
{
    queue = text;
    return true;
}

static void
Arrived(uint32_t flow, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
{
    if (Simulator::Now() >= from)
        received[flow] += packet->GetSize();
}

int
main(int argc, char** argv)
{
    DataRate rate("10Mbps"), access("100Mbps"), udpRate("0bps");
    Time delay("10ms"), accessDelay("5ms"), stop("60s");
    uint32_t tcp = 10, packet = 1500, seed = 1;
    CommandLine cmd(__FILE__);
    // As a variable, it would end at the first space.
    cmd.AddValue("queue", "text of the queue", MakeCallback(&SetQueue));
    cmd.AddValue("rate", "of the bottleneck", rate);
    cmd.AddValue("delay", "of the bottleneck, one way", delay);
    cmd.AddValue("access", "rate of each access link", access);
    cmd.AddValue("accessDelay", "of each access link, one way", accessDelay);
    cmd.AddValue("tcp", "TCP flows", tcp);
    cmd.AddValue("udp", "rate of the UDP flow", udpRate);
    cmd.AddValue("packet", "IP packet size in bytes", packet);
    cmd.AddValue("from", "start of the measurement", from);
    cmd.AddValue("stop", "end of the run", stop);
    cmd.AddValue("seed", "seed", seed);
    cmd.Parse(argc, argv);
    RngSeedManager::SetSeed(seed);
    // 20 bytes of IP, 20 of TCP and 12 of timestamps.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(packet - 52));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));

    uint32_t flows = tcp + (udpRate.GetBitRate() > 0);
    received.resize(flows);
    NodeContainer left, right, routers;
    left.Create(flows), right.Create(flows), routers.Create(2);
    InternetStackHelper().Install(NodeContainer(left, right, routers));

    PointToPointHelper link;
    // The queue disc is to hold what waits, and the device as little as it can.
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    link.SetDeviceAttribute("DataRate", DataRateValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    NetDeviceContainer bottleneck = link.Install(routers);
    TrafficControlHelper discipline;
    discipline.SetRootQueueDisc("ns3::ApportionQueueDisc", "Queue", StringValue(queue), "LinkRate", DataRateValue(rate),
                                "Seed", UintegerValue(seed));
    QueueDiscContainer discs = discipline.Install(bottleneck.Get(0));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    addresses.Assign(bottleneck);

    PointToPointHelper edge;
    edge.SetDeviceAttribute("DataRate", DataRateValue(access));
    edge.SetChannelAttribute("Delay", TimeValue(accessDelay));
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; i++)
    {
        addresses.NewNetwork();
        addresses.Assign(edge.Install(left.Get(i), routers.Get(0)));
        addresses.NewNetwork();
        Address sink = InetSocketAddress(addresses.Assign(edge.Install(routers.Get(1), right.Get(i))).GetAddress(1), 9);
        std::string protocol = i < tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
        PacketSinkHelper(protocol, sink).Install(right.Get(i));
        ApplicationContainer source;
        if (i < tcp)
            source = BulkSendHelper(protocol, sink).Install(left.Get(i));
        else
        {
            OnOffHelper cbr(protocol, sink);
            cbr.SetConstantRate(DataRate(udpRate.GetBitRate() * (packet - 28) / packet), packet - 28);
            source = cbr.Install(left.Get(i));
        }
        source.Start(Seconds(start->GetValue(0, 1)));
        right.Get(i)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Arrived, i));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(stop);
    Simulator::Run();
    for (uint32_t i = 0; i < flows; i++)
        std::cout << "flow " << i << ' ' << received[i] * 8 / (stop - from).GetSeconds() / 1e6 << '\n';
    const QueueDisc::Stats& stats = discs.Get(0)->GetStats();
    std::cout << "disc received " << stats.nTotalReceivedPackets << " sent " << stats.nTotalSentPackets << " dropped "
              << stats.nTotalDroppedPackets << " queued " << discs.Get(0)->GetNPackets() << '\n';
    Simulator::Destroy();
    return 0;
}
