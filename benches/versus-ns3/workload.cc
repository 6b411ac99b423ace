// The speed workloads in ns-3, written against its public interface.
//
//   workload one|many|link FLOWS LIMIT STOP
//
// one   FLOWS flows, a pair of hosts each, 4.65 Mb/s, RED 5/55/0.2 of LIMIT packets, 1000 B, RTT 26 ms
// many  FLOWS flows over 100 pairs of hosts, 1 Gb/s, FIFO of LIMIT packets, 1500 B, RTT 20 ms
// link  FLOWS flows from one host to another, 1 Gb/s, FIFO of LIMIT packets, 1500 B, RTT 20 ms
//
// Prints `packet_hops N cpu_seconds S peak_bytes M dropped D goodput_bytes B`: transmissions of data and ACKs on all links,
// processor time of Simulator::Run alone, the most memory that was resident, packets that the bottleneck dropped, and payload that
// the receivers got. All are counts that ns-3 keeps anyway: there are no traces.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

using namespace ns3;

struct Workload
{
    const char* rate;
    const char* delay;
    const char* access;      // Rate of the links to the hosts,
    const char* accessDelay; // and their delay.
    uint32_t pairs;          // Of hosts; none if the ends of the bottleneck are the hosts.
    uint32_t packet;         // Bytes with the headers of IP and TCP.
    uint32_t window;         // Packets.
};

static double
CpuSeconds()
{
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static uint64_t
PeakBytes()
{
    std::ifstream status("/proc/self/status");
    std::string word;
    uint64_t kilobytes = 0;
    while (status >> word && word != "VmHWM:")
        ;
    status >> kilobytes;
    return kilobytes * 1024;
}

// NewReno without SACK, timestamps and delayed ACKs, as in `run`.
static void
SetTcp(const Workload& workload)
{
    uint32_t segment = workload.packet - 40;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(3));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(workload.window * segment));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(workload.window * segment));
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(segment));
}

static TrafficControlHelper
Discipline(bool red, const Workload& workload, const std::string& limit)
{
    TrafficControlHelper discipline;
    if (red)
        discipline.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue(limit), "MinTh", DoubleValue(5),
                                    "MaxTh", DoubleValue(55), "LInterm", DoubleValue(5), "QW", DoubleValue(0.002),
                                    "Gentle", BooleanValue(false), "MeanPktSize", UintegerValue(workload.packet),
                                    "LinkBandwidth", StringValue(workload.rate));
    else
        discipline.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(limit));
    return discipline;
}

// Packets that the device has begun to transmit: each goes through its queue.
static uint64_t
Transmitted(Ptr<NetDevice> device)
{
    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(device)->GetQueue();
    return queue->GetTotalReceivedPackets() - queue->GetNPackets();
}

int
main(int argc, char** argv)
{
    const std::map<std::string, Workload> workloads{
        {"one", {"4.65Mbps", "10ms", "10Mbps", "1.5ms", 30, 1000, 20}},
        {"many", {"1Gbps", "8ms", "10Gbps", "1ms", 100, 1500, 1000}},
        {"link", {"1Gbps", "10ms", "", "", 0, 1500, 1000}},
    };
    auto found = argc == 5 ? workloads.find(argv[1]) : workloads.end();
    if (found == workloads.end())
    {
        std::cerr << "usage: workload one|many|link FLOWS LIMIT STOP\n";
        return 2;
    }
    const Workload& workload = found->second;
    const uint32_t flows = std::stoul(argv[2]);
    // The device holds one packet besides the one in transmission.
    const std::string limit = std::to_string(std::stoul(argv[3]) - 1) + "p";
    SetTcp(workload);

    NodeContainer routers, left, right;
    routers.Create(2), left.Create(workload.pairs), right.Create(workload.pairs);
    InternetStackHelper internet;
    Ipv4NixVectorHelper routing;
    internet.SetRoutingHelper(routing);
    internet.SetIpv6StackInstall(false);
    internet.Install(NodeContainer(routers, left, right));

    NetDeviceContainer devices;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(workload.rate));
    link.SetChannelAttribute("Delay", StringValue(workload.delay));
    NetDeviceContainer bottleneck = link.Install(routers);
    // Before the addresses, which install ns-3's default where there is no discipline.
    DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue()->SetMaxSize(QueueSize("1p"));
    DynamicCast<PointToPointNetDevice>(bottleneck.Get(1))->GetQueue()->SetMaxSize(QueueSize("100000p"));
    QueueDiscContainer disc = Discipline(found->first == "one", workload, limit).Install(bottleneck.Get(0));
    Discipline(false, workload, "100000p").Install(bottleneck.Get(1));
    Ipv4InterfaceContainer ends = addresses.Assign(bottleneck);
    devices.Add(bottleneck);

    // Without flow control there is no queue disc, which only costs time where nothing waits.
    PointToPointHelper edge;
    edge.DisableFlowControl();
    edge.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    std::vector<Ipv4Address> to;
    if (workload.pairs > 0)
    {
        edge.SetDeviceAttribute("DataRate", StringValue(workload.access));
        edge.SetChannelAttribute("Delay", StringValue(workload.accessDelay));
        for (uint32_t i = 0; i < workload.pairs; i++)
        {
            NetDeviceContainer near = edge.Install(left.Get(i), routers.Get(0));
            NetDeviceContainer far = edge.Install(routers.Get(1), right.Get(i));
            addresses.NewNetwork();
            addresses.Assign(near);
            addresses.NewNetwork();
            to.push_back(addresses.Assign(far).GetAddress(1));
            devices.Add(near), devices.Add(far);
        }
    }
    else
    {
        left.Add(routers.Get(0)), right.Add(routers.Get(1));
        to.push_back(ends.GetAddress(1));
    }

    const uint16_t port = 9;
    PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer receivers = receiver.Install(right);
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; i++)
    {
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(to[i % to.size()], port));
        sender.Install(left.Get(i % to.size())).Start(Seconds(start->GetValue(0, 1)));
    }

    Simulator::Stop(Time(argv[4]));
    const double before = CpuSeconds();
    Simulator::Run();
    const double used = CpuSeconds() - before;

    uint64_t hops = 0, goodput = 0;
    for (uint32_t i = 0; i < devices.GetN(); i++)
        hops += Transmitted(devices.Get(i));
    for (uint32_t i = 0; i < receivers.GetN(); i++)
        goodput += DynamicCast<PacketSink>(receivers.Get(i))->GetTotalRx();
    std::cout << "packet_hops " << hops << " cpu_seconds " << used << " peak_bytes " << PeakBytes() << " dropped "
              << disc.Get(0)->GetStats().nTotalDroppedPackets << " goodput_bytes " << goodput << '\n';
    Simulator::Destroy();
    return 0;
}
