// A queue disc of ns-3 that is any discipline of Apportion:
//
//     TrafficControlHelper tc;
//     tc.SetRootQueueDisc("ns3::ApportionQueueDisc", "Queue", StringValue("{ kind = \"drr\", limit = \"110p\" }"),
//                         "LinkRate", DataRateValue(DataRate("10Mbps")));
//
// README.md says how to compile it. It was written against the public headers of ns-3 and contains none of its code.

#include "apportion.h"

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

namespace ns3
{

/// Holds the items of the queue disc, whose accounting follows what enters and leaves here. The discipline says which item leaves.
class ApportionStore : public Queue<QueueDiscItem>
{
  public:
    ApportionStore() { SetMaxSize(QueueSize("4294967295p")); }
    void Put(Ptr<QueueDiscItem> item) { DoEnqueue(GetContainer().end(), item, m_where[PeekPointer(item)]); }
    Ptr<QueueDiscItem> Take(uint64_t handle)
    {
        auto entry = m_where.extract(reinterpret_cast<QueueDiscItem*>(handle));
        return DoDequeue(entry.mapped());
    }
    // Of Queue, for callers that want the items in the order of their arrival; there are none.
    bool Enqueue(Ptr<QueueDiscItem>) override { return false; }
    Ptr<QueueDiscItem> Dequeue() override { return nullptr; }
    Ptr<QueueDiscItem> Remove() override { return nullptr; }
    Ptr<const QueueDiscItem> Peek() const override { return nullptr; }

  private:
    std::map<QueueDiscItem*, Iterator> m_where;
};

class ApportionQueueDisc : public QueueDisc
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("ns3::ApportionQueueDisc")
                .SetParent<QueueDisc>()
                .AddConstructor<ApportionQueueDisc>()
                .AddAttribute("Queue", "The queue of a link, as a scenario of Apportion has it.", StringValue("fifo"),
                              MakeStringAccessor(&ApportionQueueDisc::m_text), MakeStringChecker())
                .AddAttribute("LinkRate", "The rate of the link.", DataRateValue(DataRate("10Mbps")),
                              MakeDataRateAccessor(&ApportionQueueDisc::m_rate), MakeDataRateChecker())
                .AddAttribute("Seed", "Seed of the random decisions.", UintegerValue(1),
                              MakeUintegerAccessor(&ApportionQueueDisc::m_seed), MakeUintegerChecker<uint64_t>())
                .AddAttribute("Flows", "Flows that are kept apart; later ones share their numbers.", UintegerValue(65536),
                              MakeUintegerAccessor(&ApportionQueueDisc::m_maxFlows), MakeUintegerChecker<uint32_t>(1));
        return tid;
    }
    ApportionQueueDisc() : QueueDisc(QueueDiscSizePolicy::NO_LIMITS) {}
    ~ApportionQueueDisc() override { apportion_queue_destroy(m_queue); }

  private:
    static uint64_t Now() { return Simulator::Now().GetNanoSeconds(); }

    bool CheckConfig() override { return true; }

    void InitializeParams() override
    {
        m_store = CreateObject<ApportionStore>();
        AddInternalQueue(m_store);
        apportion_config config{};
        config.queue = m_text.c_str();
        config.link_rate = m_rate.GetBitRate();
        config.seed = m_seed;
        config.start = Now();
        config.events = {this, &Dropped, nullptr, nullptr};
        char error[1000];
        m_queue = apportion_queue_new(&config, error, sizeof error);
        NS_ABORT_MSG_IF(!m_queue, "ApportionQueueDisc: " << error);
    }

    uint32_t Number(uint32_t hash)
    {
        auto known = m_flows.find(hash);
        if (known != m_flows.end())
            return known->second;
        return m_flows.size() < m_maxFlows ? m_flows[hash] = m_flows.size() : hash % m_maxFlows;
    }

    apportion_packet Describe(Ptr<QueueDiscItem> item)
    {
        apportion_packet packet{};
        uint8_t field = 0;
        packet.handle = reinterpret_cast<uint64_t>(PeekPointer(item));
        packet.flow = Number(item->Hash(m_seed));
        packet.size = item->GetSize();
        packet.ecn = item->GetUint8Value(QueueItem::IP_DSFIELD, field) ? field & 3 : APPORTION_ECN_NOT_ECT;
        auto v4 = DynamicCast<Ipv4QueueDiscItem>(item);
        auto v6 = DynamicCast<Ipv6QueueDiscItem>(item);
        uint8_t carried = v4 ? v4->GetHeader().GetProtocol() : v6 ? v6->GetHeader().GetNextHeader() : 0;
        packet.protocol = carried == TcpL4Protocol::PROT_NUMBER ? APPORTION_PROTOCOL_TCP : APPORTION_PROTOCOL_UDP;
        return packet;
    }

    bool DoEnqueue(Ptr<QueueDiscItem> item) override
    {
        apportion_packet packet = Describe(item);
        m_arriving = item;
        Check(apportion_queue_enqueue(m_queue, Now(), &packet));
        // A drop of the arriving item has taken it from m_arriving.
        bool taken = m_arriving != nullptr;
        m_arriving = nullptr;
        if (taken)
            m_store->Put(item);
        return taken;
    }

    Ptr<QueueDiscItem> DoDequeue() override
    {
        apportion_packet packet;
        uint64_t at;
        if (Check(apportion_queue_dequeue(m_queue, Now(), &packet)) == APPORTION_STATUS_OK)
        {
            Ptr<QueueDiscItem> item = m_store->Take(packet.handle);
            uint8_t field = 0;
            if (packet.ecn == APPORTION_ECN_CE && item->GetUint8Value(QueueItem::IP_DSFIELD, field) && (field & 3) != 3)
                Mark(item, "marked");
            return item;
        }
        if (apportion_queue_next_wakeup(m_queue, &at) == APPORTION_STATUS_OK && at > Now())
        {
            m_wakeup.Cancel();
            m_wakeup = Simulator::Schedule(NanoSeconds(at - Now()), &ApportionQueueDisc::Run, this);
        }
        return nullptr;
    }

    static void Dropped(void* context, uint64_t, const apportion_packet* packet, apportion_drop_reason reason)
    {
        static const char* const reasons[] = {"early", "forced", "overflow", "policy", "push_out"};
        auto disc = static_cast<ApportionQueueDisc*>(context);
        if (disc->m_arriving && packet->handle == reinterpret_cast<uint64_t>(PeekPointer(disc->m_arriving)))
        {
            disc->DropBeforeEnqueue(disc->m_arriving, reasons[reason]);
            disc->m_arriving = nullptr;
        }
        else
            disc->DropAfterDequeue(disc->m_store->Take(packet->handle), reasons[reason]);
    }

    static apportion_status Check(apportion_status status)
    {
        NS_ABORT_MSG_IF(status < 0, "ApportionQueueDisc: " << apportion_status_text(status));
        return status;
    }

    void DoDispose() override
    {
        m_wakeup.Cancel();
        m_store = nullptr;
        QueueDisc::DoDispose();
    }

    std::string m_text;
    DataRate m_rate;
    uint64_t m_seed;
    uint32_t m_maxFlows;
    apportion_queue* m_queue{nullptr};
    Ptr<ApportionStore> m_store;
    Ptr<QueueDiscItem> m_arriving; //!< Until the discipline has decided about it.
    std::map<uint32_t, uint32_t> m_flows; //!< By the hash of addresses, ports and protocol: numbers from 0.
    EventId m_wakeup;
};

NS_OBJECT_ENSURE_REGISTERED(ApportionQueueDisc);

} // namespace ns3
