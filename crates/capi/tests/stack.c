// A transport stack in C in the simulator. tests/it/c.rs compiles and runs this program as it does interface.c,
// with an empty folder as the argument.

#define APPORTION_SIMULATOR
#include "apportion.h"

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
#define NEVER UINT64_MAX

// A window of WINDOW packets, go back n: an answer has the number of packets that arrived in order. The source
// begins again at the first without an answer after TIMEOUT and a random part of 50 ms.

enum { WINDOW = 8, BYTES = 1000 };
#define TIMEOUT (200 * MS)

// What goes wrong, for the tests of refusals.
typedef enum fault { NOTHING, NO_END, TOO_LONG, BAD_ECN, FALLS, TOO_MUCH, ABORTS } fault;

typedef struct shared {
    fault fault;
    int open, opened, sources, ce;
} shared;

typedef struct end {
    shared *shared;
    bool is_source, is_finished;
    uint64_t latest, random, supplied, next, acked, arrived, answers, timer, timeouts, reads;
} end;

static void *open_end(void *context, const apportion_stack_end *which) {
    shared *shared = context;
    if (shared->fault == NO_END && !which->is_source)
        return NULL;
    end *end = calloc(1, sizeof *end);
    CHECK(end);
    end->shared = shared;
    end->is_source = which->is_source;
    end->random = which->seed;
    end->timer = NEVER;
    shared->open++, shared->opened++, shared->sources += which->is_source;
    return end;
}

static void close_end(void *endpoint) {
    ((end *)endpoint)->shared->open--;
    free(endpoint);
}

static end *at(void *endpoint, uint64_t now) {
    end *end = endpoint;
    CHECK(now >= end->latest);
    end->latest = now;
    return end;
}

static void supply(void *endpoint, uint64_t now, uint64_t bytes) {
    end *end = at(endpoint, now);
    CHECK(end->is_source);
    end->supplied = bytes == NEVER ? NEVER : end->supplied + bytes;
}

static void finish(void *endpoint, uint64_t now) {
    at(endpoint, now)->is_finished = true;
}

static uint64_t packets(const end *end) {
    return end->supplied / BYTES + (end->supplied % BYTES > 0);
}

static void arm(end *end, uint64_t now) {
    end->random = end->random * 6364136223846793005u + 1442695040888963407u;
    end->timer = now + TIMEOUT + (end->random >> 33) % (50 * MS);
}

static void receive(void *endpoint, uint64_t now, uint8_t ecn, const uint8_t *bytes, size_t length) {
    end *end = at(endpoint, now);
    uint64_t number;
    CHECK(length == (end->is_source ? sizeof number : BYTES));
    memcpy(&number, bytes, sizeof number);
    end->shared->ce += ecn == APPORTION_ECN_CE;
    if (!end->is_source) {
        end->arrived += number == end->arrived;
        end->answers++;
    } else if (number > end->acked) {
        end->acked = number;
        end->next = end->next > number ? end->next : number;
        end->timer = NEVER;
        if (end->next > end->acked)
            arm(end, now);
    }
}

static size_t transmit(void *endpoint, uint64_t now, uint8_t *buffer, size_t capacity, uint8_t *ecn) {
    end *end = at(endpoint, now);
    CHECK(capacity == BYTES && *ecn == APPORTION_ECN_NOT_ECT);
    if (end->answers > 0) {
        end->answers--;
        memcpy(buffer, &end->arrived, sizeof end->arrived);
        return sizeof end->arrived;
    }
    if (!end->is_source || end->next == packets(end) || end->next == end->acked + WINDOW)
        return 0;
    memset(buffer, 0, BYTES);
    memcpy(buffer, &end->next, sizeof end->next);
    end->next++;
    if (end->timer == NEVER)
        arm(end, now);
    *ecn = end->shared->fault == BAD_ECN ? 4 : APPORTION_ECN_ECT0;
    return end->shared->fault == TOO_LONG ? BYTES + 1 : BYTES;
}

static uint64_t next_timer(void *endpoint) {
    return ((end *)endpoint)->timer;
}

static void on_timer(void *endpoint, uint64_t now) {
    end *end = at(endpoint, now);
    CHECK(end->is_source && now >= end->timer);
    end->next = end->acked;
    end->timeouts++;
    end->timer = NEVER;
}

static void progress(void *endpoint, apportion_stack_progress *progress) {
    end *end = endpoint;
    CHECK(progress->delivered == 0 && progress->is_done == 0 && !progress->failure);
    progress->delivered = end->arrived * BYTES;
    progress->timeouts = end->timeouts;
    progress->window = WINDOW * BYTES;
    progress->is_done = end->is_finished && end->acked == packets(end);
    if (end->shared->fault == FALLS)
        progress->lost = end->reads++ == 0;
    if (end->shared->fault == TOO_MUCH)
        progress->lost = 1ull << 54;
    if (end->shared->fault == ABORTS && end->arrived > 0)
        progress->failure = "a datagram was \"bad\"";
}

static apportion_stack window(shared *shared) {
    return (apportion_stack){
        .name = "window",
        .context = shared,
        .packet = BYTES + 28,
        .payload = BYTES,
        .ack = 36,
        .memory = 2 * sizeof(end),
        .sets_ecn = 1,
        .counts_timeouts = 1,
        .open = open_end,
        .close = close_end,
        .supply = supply,
        .finish = finish,
        .receive = receive,
        .transmit = transmit,
        .next_timer = next_timer,
        .on_timer = on_timer,
        .progress = progress,
    };
}

// Simulations.

static apportion_status run(apportion_simulation simulation, shared *shared, char **text) {
    apportion_status status = apportion_simulate(&simulation, text);
    CHECK(!shared || shared->open == 0);
    CHECK(*text);
    return status;
}

static char *results(const char *scenario, shared *shared, uint64_t seeds, size_t jobs) {
    apportion_stack stack = window(shared);
    apportion_simulation simulation = {
        .scenario = scenario, .stacks = &stack, .stack_count = 1, .seeds = seeds, .jobs = jobs};
    char *text;
    apportion_status status = run(simulation, shared, &text);
    if (status != APPORTION_STATUS_OK)
        fprintf(stderr, "%s\n", text);
    CHECK(status == APPORTION_STATUS_OK);
    return text;
}

// The mean of a metric, or -1.
static double mean(const char *text, const char *metric) {
    char key[100];
    snprintf(key, sizeof key, "\"metric\":\"%s\"", metric);
    const char *line = strstr(text, key);
    line = line ? strstr(line, "\"mean\":") : NULL;
    return line ? atof(line + strlen("\"mean\":")) : -1;
}

#define LINK "link.wire = { from = \"a\", to = \"b\", rate = \"8Mbit\", delay = \"20ms\", loss = \"1%\" }\n"
#define FLOW "flow.mine = { from = \"a\", to = \"b\", transport = \"window\", jitter = \"0s\" }\n"
#define LOSSY(seed) "seed = " #seed "\nstop = \"30s\"\n" LINK FLOW

static void over_a_lossy_link(void) {
    shared shared = {0};
    char *first = results(LOSSY(1), &shared, 1, 1), *again = results(LOSSY(1), &shared, 1, 0);
    char *other = results(LOSSY(2), &shared, 0, 1);
    CHECK(shared.opened == 6 && shared.sources == 3);
    // Eight packets a round trip of 41 ms would be 1.55 Mb/s. Each loss, one in 100 packets or 12 round trips,
    // takes some 0.23 s more: 100 packets take 0.51 + 0.23 s.
    double mbps = mean(first, "goodput_mbps/mine");
    CHECK(mbps > 0.8 && mbps < 1.3);
    CHECK(strcmp(first, again) == 0 && strcmp(first, other) != 0);
    apportion_text_free(first);
    apportion_text_free(again);
    apportion_text_free(other);
}

static void seeds_and_jobs(void) {
    // The functions of this program count in a struct without a lock: one job.
    shared shared = {0};
    char *text = results(LOSSY(1), &shared, 3, 1);
    CHECK(strstr(text, "\"seeds\":[\"1\",") && shared.sources == 6);
    apportion_text_free(text);
}

static void a_file_ends_and_marks_arrive(void) {
    shared shared = {0};
    char *text = results(
        "seed = 1\nstop = \"20s\"\n"
        "link.wire = { from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\", queue = { kind = \"codel\", ecn = true } }\n"
        "flow.mine = { from = \"a\", to = \"b\", transport = \"window\", source = { kind = \"file\", size = \"1MB\" } }\n",
        &shared, 1, 1);
    // Eight packets in flight take 66 ms, so that CoDel marks. 1000 packets of 1028 bytes take 8.224 s.
    CHECK(shared.ce > 100 && shared.ce == mean(text, "marked_packets/mine"));
    double seconds = mean(text, "completion_mean_s/mine");
    CHECK(seconds > 8.224 && seconds < 8.24);
    apportion_text_free(text);
}

static void a_failure_is_a_warning(void) {
    shared healthy = {0}, aborts = {.fault = ABORTS};
    char *without = results(LOSSY(1), &healthy, 1, 1), *with = results(LOSSY(1), &aborts, 1, 1);
    CHECK(!strstr(without, "failed"));
    // 20 ms and the time of the first datagram of 1028 bytes.
    CHECK(strstr(with, "a connection of flow `mine` failed at 0.021 s: a datagram was \\\"bad\\\""));
    CHECK(mean(with, "goodput_mbps/mine") == mean(without, "goodput_mbps/mine"));
    apportion_text_free(without);
    apportion_text_free(with);
}

static void refused(apportion_simulation simulation, shared *shared, const char *part) {
    char *text;
    CHECK(run(simulation, shared, &text) == APPORTION_STATUS_ERROR_SIMULATION);
    if (!strstr(text, part) || strchr(text, '\n'))
        fprintf(stderr, "%s, not %s\n", text, part);
    CHECK(strstr(text, part) && !strchr(text, '\n'));
    apportion_text_free(text);
}

static void refused_stack(apportion_stack stack, const char *part) {
    shared *shared = stack.context;
    refused((apportion_simulation){.scenario = LOSSY(1), .stacks = &stack, .stack_count = 1}, shared, part);
}

static void refusals(void) {
    shared shared = {0};
#define WITHOUT(function)                                                                                \
    do {                                                                                                 \
        apportion_stack stack = window(&shared);                                                         \
        stack.function = NULL;                                                                           \
        refused_stack(stack, "stack `window`: its function " #function " is null");                      \
    } while (0)
    WITHOUT(open);
    WITHOUT(supply);
    WITHOUT(receive);
    WITHOUT(transmit);
    WITHOUT(next_timer);
    WITHOUT(on_timer);
    WITHOUT(progress);
#define WITH(field, value, part)                                                                         \
    do {                                                                                                 \
        apportion_stack stack = window(&shared);                                                         \
        stack.field = value;                                                                             \
        refused_stack(stack, part);                                                                      \
    } while (0)
    WITH(name, NULL, "stacks[0]: it has no name");
    WITH(name, "", "stacks[0]: it has no name");
    WITH(name, "\xff", "stacks[0]: name is not UTF-8");
    WITH(name, "codel", "another entry has this name");
    WITH(name, "widnow", "`window` is not a transport");
    WITH(protocol, APPORTION_PROTOCOL_CONTROL, "its protocol is 2");
    WITH(packet, 28, "its packet is 28; set 29 to 65535 bytes");
    WITH(packet, 65536, "its packet is 65536");
    WITH(payload, 0, "its payload is 0; set 1 to 1028 bytes");
    WITH(ack, 0, "its ack is 0");
    CHECK(shared.opened == 0);

    apportion_stack stack = window(&shared);
    refused((apportion_simulation){0}, NULL, "scenario is null");
    refused((apportion_simulation){.scenario = LOSSY(1), .stack_count = 1}, NULL, "stacks is null");
    refused((apportion_simulation){.scenario = "seed = \"x\"\nstop = \"1s\"\n" LINK FLOW,
                                   .stacks = &stack,
                                   .stack_count = 1},
            &shared, "scenario:1: seed: ");
    refused((apportion_simulation){.scenario = LOSSY(1),
                                   .stacks = (apportion_stack[]){stack, stack},
                                   .stack_count = 2},
            &shared, "`window` cannot be registered: another entry has this name");
    refused((apportion_simulation){.scenario = LOSSY(1)}, NULL, "`window` is not a transport");
    refused((apportion_simulation){.scenario = "seed = 1\nstop = \"1000000s\"\n"
                                               "link.wire = { from = \"a\", to = \"b\", rate = \"10Gbit\", delay = \"1ms\" }\n" FLOW,
                                   .stacks = &stack,
                                   .stack_count = 1},
            &shared, "set force");
    char *text;
    CHECK(apportion_simulate(NULL, &text) == APPORTION_STATUS_ERROR_NULL && !text);
    CHECK(apportion_simulate(&(apportion_simulation){0}, NULL) == APPORTION_STATUS_ERROR_NULL);
    apportion_text_free(NULL);
}

static void what_functions_return(const char *folder) {
    const struct {
        fault fault;
        const char *part;
    } cases[] = {
        {NO_END, "transport `window`: open returned null (sink of connection 0)"},
        {TOO_LONG, "transport `window`: transmit returned 1001; its buffer has 1000 bytes (source of connection 0"},
        {BAD_ECN, "transmit wrote ECN 4"},
        {FALLS, "progress.lost fell from 1 to 0"},
        {TOO_MUCH, "progress.lost is 18014398509481984; it is at most 2^53"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shared shared = {.fault = cases[i].fault};
        apportion_stack stack = window(&shared);
        apportion_simulation simulation = {
            .scenario = LOSSY(1), .stacks = &stack, .stack_count = 1, .seeds = 2, .folder = folder};
        refused(simulation, &shared, cases[i].part);
        // It ends at once.
        CHECK(shared.opened <= 2);
    }
}

static void a_folder(const char *folder) {
    shared shared = {0};
    apportion_stack stack = window(&shared);
    apportion_simulation simulation = {
        .scenario = "seed = 1\nstop = \"1s\"\n"
                    "link.wire = { from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\", pcap = true }\n" FLOW,
        .stacks = &stack,
        .stack_count = 1,
        .folder = folder,
    };
    char *text, name[1000];
    CHECK(run(simulation, &shared, &text) == APPORTION_STATUS_OK);
    apportion_text_free(text);
    // The runs that failed before have left none.
    snprintf(name, sizeof name, "%s/1/wire.pcap", folder);
    FILE *capture = fopen(name, "rb");
    CHECK(capture);
    CHECK(fseek(capture, 0, SEEK_END) == 0);
    // A megabit.
    CHECK(ftell(capture) > 110000);
    fclose(capture);
}

int main(int count, char **words) {
    CHECK(count == 2);
    over_a_lossy_link();
    seeds_and_jobs();
    a_file_ends_and_marks_arrive();
    a_failure_is_a_warning();
    refusals();
    what_functions_return(words[1]);
    a_folder(words[1]);
    puts("a stack in C ran");
    return 0;
}
