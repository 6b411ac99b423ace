// The C half of the bench `border`: prints the nanoseconds of one enqueue and one dequeue with a standing
// backlog. Arguments: the text of the queue, the number of rounds.

#include "apportion.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PACKETS = 1 << 14, FLOWS = 1000, BACKLOG = 2000 };

static apportion_packet packets[PACKETS];

static uint64_t clock_nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int count, char **words) {
    apportion_config config = {.queue = count > 2 ? words[1] : NULL, .link_rate = 8000000000u, .seed = 1};
    char error[400];
    apportion_queue *queue = apportion_queue_new(&config, error, sizeof error);
    if (!queue) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    uint64_t rounds = strtoull(words[2], NULL, 10), now = 0, sum = 0;
    for (uint32_t i = 0; i < PACKETS; i++)
        packets[i] = (apportion_packet){.handle = i, .flow = (i * 0x9e3779b1u >> 7) % FLOWS, .size = 1000};
    for (uint32_t i = 0; i < BACKLOG; i++)
        apportion_queue_enqueue(queue, now, &packets[i]);
    uint64_t start = clock_nanos();
    for (uint64_t i = 0; i < rounds; i++) {
        apportion_packet out;
        now += 1000;
        apportion_queue_enqueue(queue, now, &packets[(BACKLOG + i) % PACKETS]);
        if (apportion_queue_dequeue(queue, now, &out) == APPORTION_STATUS_OK)
            sum += out.handle;
    }
    printf("%.3f %llu\n", (double)(clock_nanos() - start) / (double)rounds, (unsigned long long)sum);
    return apportion_queue_destroy(queue);
}
