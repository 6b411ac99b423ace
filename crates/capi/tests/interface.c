// The C interface as a C program uses it. tests/it/c.rs compiles and runs this program, under
// AddressSanitizer where it is available, with the text of one queue per argument; it prints one line and
// returns 0, or the line of the check that failed.

#include "apportion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds)                                                                                     \
    do {                                                                                                 \
        if (!(holds)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);                                  \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

#define MS 1000000ull

#define OK APPORTION_STATUS_OK
#define NONE APPORTION_STATUS_NONE

static apportion_queue *make(const char *text, uint64_t start, apportion_events events) {
    apportion_config config = {.queue = text, .link_rate = 10000000, .seed = 1, .start = start, .events = events};
    char error[400] = "";
    apportion_queue *queue = apportion_queue_new(&config, error, sizeof error);
    if (!queue)
        fprintf(stderr, "%s: %s\n", text, error);
    CHECK(queue);
    return queue;
}

static apportion_queue *quiet(const char *text) {
    return make(text, 0, (apportion_events){0});
}

static apportion_packet packet(uint64_t handle, uint32_t flow, uint32_t size) {
    return (apportion_packet){.handle = handle, .flow = flow, .size = size};
}

// Errors in the configuration are explained in text.

static void refused(apportion_config config, const char *part) {
    char error[400] = "";
    CHECK(!apportion_queue_new(&config, error, sizeof error));
    if (!strstr(error, part))
        fprintf(stderr, "%s\n", error);
    CHECK(strstr(error, part));
}

static void creation(void) {
    double weights[] = {2, NAN};
    refused((apportion_config){.queue = "drrr", .link_rate = 1}, "(did you mean `drr`?)");
    refused((apportion_config){.queue = "{ kind = \"red\", min_th = \"x\" }", .link_rate = 1}, "queue.min_th: ");
    refused((apportion_config){.queue = "\xff", .link_rate = 1}, "queue is not UTF-8");
    refused((apportion_config){.queue = "fifo", .name = "\xff", .link_rate = 1}, "name is not UTF-8");
    refused((apportion_config){.queue = "fifo"}, "link_rate is zero");
    refused((apportion_config){.queue = "{ kind = \"cake\", ack_filter = \"aggressive\" }", .link_rate = 1},
            "queue.ack_filter: TCP headers");
    refused((apportion_config){.queue = "{ kind = \"cake\", tins = \"diffserv4\" }", .link_rate = 1},
            "queue.tins: packets have no DSCP here");
    refused((apportion_config){.link_rate = 1}, "queue is null");
    refused((apportion_config){.queue = "hcsfq", .link_rate = 1, .customer_weights = weights, .customers = 2},
            "customer_weights");

    char error[400] = "";
    CHECK(!apportion_queue_new(NULL, error, sizeof error) && !strcmp(error, "config is null"));
    CHECK(!apportion_queue_new(NULL, error, 4) && !strcmp(error, "con"));
    CHECK(!apportion_queue_new(NULL, error, 1) && !strcmp(error, ""));
    error[0] = 'x';
    CHECK(!apportion_queue_new(NULL, error, 0) && error[0] == 'x');
    CHECK(!apportion_queue_new(NULL, NULL, 9));
    // Error texts are cut between characters.
    apportion_config unknown = {.queue = "\xc3\xa4\xc3\xa4", .link_rate = 1};
    for (size_t size = 1; size < 30; size++) {
        CHECK(!apportion_queue_new(&unknown, error, size));
        CHECK(strlen(error) < size && (strlen(error) == 0 || (unsigned char)error[strlen(error) - 1] != 0xc3));
    }

    weights[1] = 0.5;
    apportion_config fine = {.queue = "hcsfq", .link_rate = 1, .customer_weights = weights, .customers = 2};
    apportion_queue *queue = apportion_queue_new(&fine, NULL, 0);
    CHECK(queue && apportion_queue_set_customer(queue, 7, 2) == OK);
    CHECK(apportion_queue_set_hosts(queue, 7, 1, 2) == APPORTION_STATUS_UNUSED);
    CHECK(apportion_queue_destroy(queue) == OK && apportion_queue_destroy(NULL) == OK);
}

// Misuse returns an error and changes nothing.

static void misuse(void) {
    apportion_packet one = packet(1, 0, 100), out = packet(9, 9, 9);
    apportion_backlog backlog;
    uint64_t at;
    CHECK(apportion_queue_enqueue(NULL, 0, &one) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_dequeue(NULL, 0, &out) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_drain(NULL, 0, &out) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_next_wakeup(NULL, &at) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_backlog(NULL, &backlog) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_set_link_rate(NULL, 0, 1) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_set_limit_packets(NULL, 1) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_set_weight(NULL, 0, 1) == APPORTION_STATUS_ERROR_NULL);

    apportion_queue *queue = make("fifo", 50, (apportion_events){0});
    CHECK(apportion_queue_enqueue(queue, 50, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_dequeue(queue, 50, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_drain(queue, 50, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_next_wakeup(queue, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_backlog(queue, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_statistics(queue, NULL, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_flow_statistics(queue, NULL, NULL) == APPORTION_STATUS_ERROR_NULL);
    CHECK(apportion_queue_set_weight(queue, 0, 0) == APPORTION_STATUS_ERROR_VALUE);
    CHECK(apportion_queue_set_weight(queue, 0, INFINITY) == APPORTION_STATUS_ERROR_VALUE);
    CHECK(apportion_queue_set_limit_bytes(queue, 0) == APPORTION_STATUS_ERROR_VALUE);
    CHECK(apportion_queue_set_class(queue, 50, 0, 2) == APPORTION_STATUS_ERROR_CODE);
    CHECK(apportion_queue_set_weight(queue, 0, 2) == APPORTION_STATUS_UNUSED);
    CHECK(apportion_queue_set_shaper_rate(queue, 50, 1) == APPORTION_STATUS_UNUSED);
    apportion_packet empty = packet(1, 0, 0), wrong = one;
    wrong.ecn = 4;
    CHECK(apportion_queue_enqueue(queue, 50, &empty) == APPORTION_STATUS_ERROR_SIZE);
    CHECK(apportion_queue_enqueue(queue, 50, &wrong) == APPORTION_STATUS_ERROR_CODE);
    CHECK(apportion_queue_enqueue(queue, 49, &one) == APPORTION_STATUS_ERROR_TIME);
    CHECK(apportion_queue_enqueue(queue, 60, &one) == OK);
    CHECK(apportion_queue_dequeue(queue, 59, &out) == APPORTION_STATUS_ERROR_TIME && out.handle == 9);
    CHECK(apportion_queue_set_link_rate(queue, 59, 1) == APPORTION_STATUS_ERROR_TIME);
    CHECK(apportion_queue_backlog(queue, &backlog) == OK && backlog.packets == 1 && backlog.bytes == 100);
    CHECK(apportion_queue_dequeue(queue, 60, &out) == OK && out.handle == 1 && out.size == 100);
    CHECK(apportion_queue_dequeue(queue, 60, &out) == NONE);
    CHECK(!strcmp(apportion_status_text(APPORTION_STATUS_ERROR_NULL), "a pointer is null"));
    CHECK(!strcmp(apportion_status_text(-99), "not a status of this library"));
    apportion_queue_destroy(queue);
}

// A callback cannot call the queue that called it, but can call another one.

static apportion_queue *outer, *other;
static int dropped;

static void reenter(void *context, uint64_t now, const apportion_packet *gone, apportion_drop_reason reason) {
    apportion_packet out;
    apportion_backlog backlog;
    CHECK(context == &dropped && now == 3 && gone->handle == 2 && reason == APPORTION_DROP_REASON_OVERFLOW);
    CHECK(apportion_queue_enqueue(outer, now, gone) == APPORTION_STATUS_ERROR_BUSY);
    CHECK(apportion_queue_dequeue(outer, now, &out) == APPORTION_STATUS_ERROR_BUSY);
    CHECK(apportion_queue_backlog(outer, &backlog) == APPORTION_STATUS_ERROR_BUSY);
    CHECK(apportion_queue_destroy(outer) == APPORTION_STATUS_ERROR_BUSY);
    CHECK(apportion_queue_enqueue(other, now, gone) == OK);
    dropped++;
}

static void callbacks(void) {
    apportion_packet first = packet(1, 0, 100), second = packet(2, 0, 100);
    other = quiet("fifo");
    outer = make("{ kind = \"fifo\", limit = \"1p\" }", 0, (apportion_events){.context = &dropped, .dropped = reenter});
    CHECK(apportion_queue_enqueue(outer, 3, &first) == OK && apportion_queue_enqueue(outer, 3, &second) == OK);
    CHECK(dropped == 1);
    apportion_queue_destroy(outer);
    apportion_queue_destroy(other);
}

// Callbacks report drops, marks and overload.

static void orders(void) {
    apportion_queue *queue = quiet("{ kind = \"drr\", limit = \"110p\", quantum = \"1500B\" }");
    CHECK(apportion_queue_set_weight(queue, 1, 2) == OK);
    for (uint32_t i = 0; i < 30; i++) {
        apportion_packet in = packet(i, i % 2, 1500);
        CHECK(apportion_queue_enqueue(queue, 0, &in) == OK);
    }
    int of[2] = {0, 0};
    apportion_packet out;
    for (int i = 0; i < 15; i++) {
        CHECK(apportion_queue_dequeue(queue, 0, &out) == OK);
        of[out.flow]++;
    }
    CHECK(of[0] == 5 && of[1] == 10);
    int left = 0;
    while (apportion_queue_drain(queue, 0, &out) == OK)
        left++;
    CHECK(left == 15);
    apportion_queue_destroy(queue);
}

static void wakeups(void) {
    // 1250 bytes at 1 Mbit/s take 10 ms. The clock starts at 7 s.
    uint64_t start = 7000 * MS, at = 0;
    apportion_queue *queue =
        make("{ kind = \"fifo\", shaper = \"token_bucket\", rate = \"1Mbit\", burst = \"1250B\" }", start, (apportion_events){0});
    apportion_packet in = packet(1, 0, 1250), out;
    CHECK(apportion_queue_enqueue(queue, start, &in) == OK && apportion_queue_enqueue(queue, start, &in) == OK);
    CHECK(apportion_queue_dequeue(queue, start, &out) == OK && apportion_queue_dequeue(queue, start, &out) == NONE);
    CHECK(apportion_queue_next_wakeup(queue, &at) == OK && at == start + 10 * MS);
    CHECK(apportion_queue_dequeue(queue, at - 1, &out) == NONE && apportion_queue_dequeue(queue, at, &out) == OK);
    CHECK(apportion_queue_set_shaper_rate(queue, at, 2000000) == OK);
    CHECK(apportion_queue_enqueue(queue, at, &in) == OK && apportion_queue_dequeue(queue, at, &out) == NONE);
    CHECK(apportion_queue_next_wakeup(queue, &at) == OK && at == start + 15 * MS);
    apportion_queue_destroy(queue);
}

static int marks;
static void marked(void *context, uint64_t now, const apportion_packet *packet) {
    (void)context, (void)now;
    CHECK(packet->ecn == APPORTION_ECN_CE && packet->colour == APPORTION_COLOUR_YELLOW);
    marks++;
}

static void show(void *context, const char *name, double value) {
    if (!strcmp(name, "early_marks") || strstr(name, "mark"))
        *(double *)context += value;
    CHECK(strlen(name) > 0);
}

static void marking(void) {
    apportion_queue *queue = make("{ kind = \"codel\", ecn = true }", 0, (apportion_events){.marked = marked});
    apportion_packet in = packet(1, 0, 1500), out;
    in.ecn = APPORTION_ECN_ECT0, in.colour = APPORTION_COLOUR_YELLOW, in.protocol = APPORTION_PROTOCOL_TCP;
    int congested = 0;
    for (uint64_t now = 0; now < 4000 * MS; now += 10 * MS) {
        for (int i = 0; i < 2; i++)
            apportion_queue_enqueue(queue, now, &in);
        if (apportion_queue_dequeue(queue, now, &out) == OK)
            congested += out.ecn == APPORTION_ECN_CE;
    }
    CHECK(marks > 5 && congested == marks);
    double shown = 0;
    CHECK(apportion_queue_statistics(queue, &shown, show) == OK);
    apportion_queue_destroy(queue);
}

static void labels(void) {
    apportion_queue *queue = quiet("csfq");
    apportion_packet in = packet(1, 0, 1000), out;
    CHECK(apportion_queue_enqueue(queue, 0, &in) == OK && apportion_queue_dequeue(queue, 0, &out) == OK);
    CHECK(out.label_kind == APPORTION_LABEL_KIND_RATE && apportion_label_value(out.label) > 0);
    out.label = apportion_label_code(64000);
    CHECK(apportion_queue_enqueue(queue, 1, &out) == OK && apportion_queue_dequeue(queue, 1, &out) == OK);
    CHECK(apportion_label_value(out.label) <= 64000);
    apportion_queue_destroy(queue);
}

// Random sequences of calls: each packet leaves once, the backlog equals the packets that have not left, and
// nothing crashes, leaks or hangs.

enum { PACKETS = 2000 };
typedef struct {
    uint64_t random;
    uint64_t now;
    uint8_t held[PACKETS];
    uint32_t size[PACKETS];
    uint64_t packets, bytes;
} world;

static uint64_t draw(world *world, uint64_t below) {
    world->random ^= world->random << 13, world->random ^= world->random >> 7, world->random ^= world->random << 17;
    return world->random % below;
}

static void leave(world *world, const apportion_packet *packet) {
    CHECK(packet->handle < PACKETS && world->held[packet->handle] && packet->size == world->size[packet->handle]);
    world->held[packet->handle] = 0;
    world->packets--, world->bytes -= packet->size;
}

static void lost(void *context, uint64_t now, const apportion_packet *packet, apportion_drop_reason reason) {
    world *world = context;
    CHECK(now <= world->now && (int)reason >= 0 && reason <= APPORTION_DROP_REASON_PUSH_OUT);
    leave(world, packet);
}

static void change(world *world, apportion_queue *queue) {
    const double weights[] = {1e-300, 0.1, 1, 7.5, 1e300, NAN, -1};
    const uint64_t amounts[] = {0, 1, 1000, 64000, 10000000, UINT64_MAX};
    uint64_t amount = amounts[draw(world, 6)];
    uint32_t flow = (uint32_t)draw(world, 9);
    switch (draw(world, 9)) {
    case 0: apportion_queue_set_weight(queue, flow, weights[draw(world, 7)]); break;
    case 1: apportion_queue_set_limit_packets(queue, amount); break;
    case 2: apportion_queue_set_limit_bytes(queue, amount); break;
    case 3: apportion_queue_set_link_rate(queue, world->now, amount); break;
    case 4: apportion_queue_set_guarantee(queue, flow, amount, draw(world, 1000 * MS)); break;
    case 5: apportion_queue_set_class(queue, world->now, flow, (uint32_t)draw(world, 3)); break;
    case 6: apportion_queue_set_customer(queue, flow, (uint32_t)amount); break;
    case 7: apportion_queue_set_shaper_rate(queue, world->now, amount); break;
    case 8: apportion_queue_set_hosts(queue, flow, (uint32_t)amount, (uint32_t)draw(world, 3)); break;
    }
}

static uint64_t left;

static void random_calls(const char *text, uint64_t seed) {
    static world world;
    memset(&world, 0, sizeof world);
    world.random = seed * 0x9e3779b97f4a7c15ull + 1;
    apportion_events events = {.context = &world, .dropped = lost};
    apportion_queue *queue = make(text, 0, events);
    for (uint64_t next = 0; next < PACKETS;) {
        apportion_packet in, out;
        apportion_backlog backlog;
        switch (draw(&world, 8)) {
        case 0:
        case 1:
        case 2:
        case 3:
            in = packet(next, (uint32_t)draw(&world, draw(&world, 50) ? 8 : 100000), (uint32_t)draw(&world, 1600));
            in.ecn = (uint8_t)draw(&world, 5), in.protocol = (uint8_t)draw(&world, 3);
            in.colour = (uint8_t)draw(&world, 4), in.label_kind = (uint8_t)draw(&world, 4);
            in.label = (uint32_t)draw(&world, 1 << 17);
            world.held[next] = 1, world.size[next] = in.size, world.packets++, world.bytes += in.size;
            if (apportion_queue_enqueue(queue, world.now, &in) < 0) {
                CHECK(in.size == 0 || in.ecn > APPORTION_ECN_CE);
                leave(&world, &in);
            }
            next++;
            break;
        case 4:
        case 5:
            if (apportion_queue_dequeue(queue, world.now, &out) == OK)
                leave(&world, &out), left++;
            break;
        case 6: world.now += draw(&world, draw(&world, 100) ? 5 * MS : 3000 * MS); break;
        case 7:
            if (draw(&world, 10) == 0)
                change(&world, queue);
            break;
        }
        CHECK(apportion_queue_backlog(queue, &backlog) == OK);
        CHECK(backlog.packets == world.packets && backlog.bytes == world.bytes);
    }
    double ignored = 0;
    CHECK(apportion_queue_statistics(queue, &ignored, show) == OK);
    apportion_packet out;
    if (seed % 2)
        while (apportion_queue_drain(queue, world.now, &out) == OK)
            leave(&world, &out);
    CHECK(seed % 2 == 0 || world.packets == 0);
    apportion_queue_destroy(queue);
}

int main(int count, char **queues) {
    creation();
    misuse();
    callbacks();
    orders();
    wakeups();
    marking();
    labels();
    for (int i = 1; i < count; i++)
        for (uint64_t seed = 0; seed < 2; seed++)
            random_calls(queues[i], seed);
    printf("%d queues, %llu packets forwarded\n", count - 1, (unsigned long long)left);
    return 0;
}
